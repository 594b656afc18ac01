"""The database underneath: transactions, timeouts, the SQLite file, rows that others refer to."""
