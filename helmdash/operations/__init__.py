"""Writes, one module for each subject: keyword-only functions, one short transaction each."""
