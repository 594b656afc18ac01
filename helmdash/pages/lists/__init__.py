"""Lists of the pages: what the bar above each asks for, and how it is said in an address."""
