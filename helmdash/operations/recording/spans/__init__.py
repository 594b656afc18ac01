"""Calls that came without their session, and the spans that name it later."""
