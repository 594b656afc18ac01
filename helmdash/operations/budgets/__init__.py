"""Budgets: changed by people, and loaded from the shipped table."""
