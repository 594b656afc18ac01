"""Reads what this agent wrote; reader.py says how."""

from __future__ import annotations
