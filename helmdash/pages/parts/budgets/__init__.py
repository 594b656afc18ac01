"""What pages of budgets show: rows, sources of figures, edits, suggestions, what-ifs."""
