"""The shell face: management commands. An app only so that Django finds them; it has no tables."""
