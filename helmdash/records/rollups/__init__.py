"""Rows of rollups, and what of calls, fits and plans they count."""
