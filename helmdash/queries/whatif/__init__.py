"""What recorded calls and fits would have been under edits of budgets, and stored what-ifs."""
