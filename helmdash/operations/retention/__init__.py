"""Retention: rows and texts that go when they are old, and conversations that go for good."""
