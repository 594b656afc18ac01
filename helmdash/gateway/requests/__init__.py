"""One request as it came in: where it leads, what it asks for, and the call that it becomes."""
