"""Drawings: curves, bars, maps, and their axes."""
