"""Reads of conversations: the list, one with its curve, its care, and what left its context."""
