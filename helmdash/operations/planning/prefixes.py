"""What tells whether two calls share a cacheable prefix."""

from __future__ import annotations

import hashlib


def sha_of(system: str) -> str:
    """A short hash of a system message: equal ones can be served from a prefix cache."""
    return hashlib.sha256(system.encode("utf-8", "surrogatepass")).hexdigest()[:16]
