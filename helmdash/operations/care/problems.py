"""What can be wrong with a request to care for a conversation."""

from __future__ import annotations


class NoConversation(Exception):
    """No call of this conversation is known."""


class NoReminder(Exception):
    """The conversation has no reminder with this id."""


class Braked(Exception):
    """A clear that is due by itself is not done: the last two rounds brought nothing new."""


class CareProblem(Exception):
    """The request cannot be done; `field` is the one to blame, and the message says why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message
