"""What bodies and queries may hold, as TypedDicts: one definition checks them and is their schema.

Beside them the few answers that are the API's own. All others are the dataclasses that queries and
operations give (helmdash.answers).
"""
