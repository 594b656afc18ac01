"""The budgets in the admin: rows, their form with its preview, and the notes beside them."""
