"""Who sends a request: by key, by session or nobody, and how many tries they have."""
