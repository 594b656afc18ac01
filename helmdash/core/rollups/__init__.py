"""Rollups: what many calls come to, added up by quarter-hours, hours, days and months (ADR 32)."""
