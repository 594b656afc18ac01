"""English, the one language there is."""
