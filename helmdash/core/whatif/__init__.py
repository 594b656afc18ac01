"""Budgets as they would be: recorded calls and fits judged anew under edits that nobody made."""
