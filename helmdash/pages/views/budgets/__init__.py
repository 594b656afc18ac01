"""Budgets: rows and edits, lines, what-ifs, and what is suggested."""
