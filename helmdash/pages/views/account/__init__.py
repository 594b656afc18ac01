"""Coming in, and what somebody chooses for themselves."""
