"""Reads of budgets: the table as it rules now, and whose window a row holds."""
