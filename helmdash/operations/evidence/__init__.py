"""Suggested edits of budgets: made anew as calls come in, accepted or dismissed by people."""
