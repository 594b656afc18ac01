"""Everything that is stored: the one Django app with tables, and its admin."""
