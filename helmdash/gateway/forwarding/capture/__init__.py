"""The record of a call that has ended: what it told, within what may be kept, handed over once."""
