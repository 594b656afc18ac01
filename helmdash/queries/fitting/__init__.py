"""Catalogs, fits of them, and the Trims that these left."""
