"""The JSON shapes of the API, as TypedDicts: what bodies may hold, and what answers do.

One definition does three things: it checks what comes in (or, by mypy, what goes out), it is the
OpenAPI's schema, and it is read by people. Shapes of answers are total: what is not known is null.
"""
