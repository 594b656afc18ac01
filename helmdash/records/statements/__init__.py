"""Statements of recording to the driver of each database, and the values that these take."""
