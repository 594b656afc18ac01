"""Upstreams: where calls go, which addresses they may have, and those the environment names."""
