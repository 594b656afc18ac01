"""Who may come in: projects, people, sessions, and the log of what they did."""
