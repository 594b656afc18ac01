"""The history that a client sends with each request: read, and written with another beginning."""
