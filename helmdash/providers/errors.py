"""Why a request cannot go on, in this room.

Exception
+-- BadRequest       what a client sent cannot be read; answered with 400, naming the member
+-- CannotTranslate  it can, but the upstream's format has no way to say it; answered with 400

What an upstream sends raises nothing: whatever cannot be read of it becomes a `wire.WireError` in
the reply or the stream. Only lists of models, which no call waits for, raise ValueError.
"""

from __future__ import annotations


class BadRequest(Exception):
    """A client's request cannot be read; `field` is the path of the member that is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class CannotTranslate(Exception):
    """The request is sound, but this provider's format has no way to say it."""
