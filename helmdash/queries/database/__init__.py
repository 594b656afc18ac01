"""Reads about the database itself: is it there, in which condition, how full."""
