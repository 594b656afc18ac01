"""The database underneath: transactions, timeouts, the SQLite file, and rows that others refer to."""
