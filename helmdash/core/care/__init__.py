"""Care: what is done about a full context, in which words, and what is kept of a history."""
