"""Reads, one module for each subject: keyword-only functions that return frozen dataclasses.

No model instance leaves this package, so a template or a face cannot reach the database.
"""
