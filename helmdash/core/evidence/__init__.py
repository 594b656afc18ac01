"""Evidence: figures of budgets learned from recorded calls, each with how it was come by."""
