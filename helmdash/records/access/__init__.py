"""Who asks, what they may do, and what is kept of their keys and secrets."""
