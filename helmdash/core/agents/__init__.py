"""What agents say of their calls by themselves: which conversation, which part of it, what for."""
