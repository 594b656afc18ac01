"""When somebody is called, what is said, and in which shape a channel takes it."""
