"""Recording calls: judged, placed in a conversation, and stored as rows, a batch at a time."""
