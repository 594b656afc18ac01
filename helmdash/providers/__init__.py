"""Wire formats of the providers, sans I/O: bytes to plain values and back."""
