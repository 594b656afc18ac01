"""Budgets: the figures a model is held to, where they come from, and how full a context is."""
