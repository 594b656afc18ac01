"""Values of queries and operations as the shapes that leave. Nothing is decided here."""
