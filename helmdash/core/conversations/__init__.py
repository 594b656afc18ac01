"""Conversations: which one a request belongs to, where in it, and by which program."""
