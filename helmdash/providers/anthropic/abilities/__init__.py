"""What each of Anthropic's models can do, and how it is asked to think and to answer in JSON."""
