"""Plans: their history, and trying one, or a fit, before it is asked for."""
