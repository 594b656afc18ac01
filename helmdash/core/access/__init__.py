"""Access: who may do what, how often, from where, and until when."""
