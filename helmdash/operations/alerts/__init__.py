"""Alerts: rules are looked at, messages made and delivered, both by jobs."""
