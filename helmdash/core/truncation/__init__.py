"""Truncation: prompts that a server cut without saying so, told from sizes alone."""
