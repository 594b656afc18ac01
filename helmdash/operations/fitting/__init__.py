"""Fitting: catalogs are stored, fitted to a model's budget, and assembled into prompts."""
