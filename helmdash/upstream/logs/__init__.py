"""The log of requests to an Ollama server, and its files."""
