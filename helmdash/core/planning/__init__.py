"""Planning: what a model is told, what it answered, and how the next try differs."""
