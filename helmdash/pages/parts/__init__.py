"""What the templates are given besides the queries' values: drawings, words, snippets, rows."""
