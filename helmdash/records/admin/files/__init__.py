"""Rows of the admin as files, and back: CSV, JSON and spreadsheets."""
