"""HTTP as it comes off the wire, within limits that an ASGI application never sees (ADR 19)."""
