"""Calls: what is listed, filtered, drawn and told of them."""
