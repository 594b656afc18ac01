"""Items of the Responses API: calls of tools, reasoning, compactions, and those still open."""
