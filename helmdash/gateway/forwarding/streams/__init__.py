"""A stream on its way: pieces of it, and the pipes that they go through."""
