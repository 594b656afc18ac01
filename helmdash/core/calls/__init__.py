"""Calls: what one told us, what it used, how it ended, and why it failed."""
