"""Which calls are exported to which receivers: written with the calls, and what became of it."""
