"""How the agents that people run are connected: for each one block to paste, filled in."""
