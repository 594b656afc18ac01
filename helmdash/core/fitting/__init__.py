"""Fitting: a catalog within a room, with what is shown of each entry and why."""
