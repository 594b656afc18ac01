"""What the tests of care share: a conversation that goes on call by call, and short looks at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from helmdash.core.access.permissions import SHELL
from helmdash.operations import care
from helmdash.operations.care import Advanced, Cleared
from helmdash.operations.recording.call_batch import Recorded
from helmdash.queries.access.access import ProjectInfo
from tests.factories import NOW, make_capture
from tests.recording.support import record

OVERFLOW = {
    "http_status": 400,
    "status": "error",
    "finish_reason": None,
    "error_code": "context_length_exceeded",
    "error_message": "This model's maximum context length is 128000 tokens.",
}


@dataclass(slots=True)
class Talk:
    """One agent: it asks what to do, generates, and reports. A minute passes at each."""

    project: ProjectInfo
    name: str = "talk"
    at: datetime = NOW
    told: list[Advanced] = field(default_factory=list)

    def tick(self) -> datetime:
        self.at += timedelta(minutes=1)
        return self.at

    def call(self, tokens: int | None = 20_000, **over: Any) -> Recorded:
        """Report a call with a prompt of so many tokens; None: it told no usage."""
        usage = None if tokens is None else {"prompt_tokens": tokens}
        given = {"conversation": self.name, "usage": usage, "started_at": self.tick(), **over}
        (answer,) = record(self.project, make_capture(**given), now=self.at)
        return answer

    def advance(self, **over: Any) -> Advanced:
        """Ask what to do before the next generation."""
        given = {"project": self.project, "conversation": self.name, "now": self.tick(), **over}
        self.told.append(care.advance(**given))
        return self.told[-1]

    def turn(self, tokens: int | None, **over: Any) -> Advanced:
        """Ask, and report the call that follows."""
        told = self.advance(**over)
        self.call(tokens)
        return told

    def turns(self, tokens: int | None, count: int) -> list[str]:
        """So many turns in a row, told in short."""
        return [short(self.turn(tokens)) for _ in range(count)]

    def clear(self, **over: Any) -> Cleared:
        given = {"project": self.project, "conversation": self.name, "now": self.tick(), **over}
        return care.clear(actor=SHELL, **given)

    def remind(self, content: str = "Goal: ship it.", **over: Any) -> str:
        """Add a reminder; its id."""
        given = {"project": self.project, "conversation": self.name, "now": self.tick(), **over}
        return care.add_reminder(actor=SHELL, content=content, **given).id


def short(told: Advanced) -> str:
    """`none`, `soft`, `hard`, `4` to `0` for the countdown (`4u` with a user's text), `clear`."""
    if told.action in ("none", "clear"):
        return told.action
    if told.strength != "critical":
        return str(told.strength)
    return f"{told.remaining}{'' if told.persist else 'u'}"
