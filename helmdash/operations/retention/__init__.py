"""Retention: rows and texts that go when they are old enough, and conversations that go for good."""
