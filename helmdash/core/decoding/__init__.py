"""Decoding: the one JSON value that a model was asked for."""
