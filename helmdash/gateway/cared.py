"""What is known of a call that is cared for: its history as it came, and what was done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from helmdash.core.reminders import HEADINGS
from helmdash.core.restarts import (
    Beginning,
    Entry,
    end_of,
    facts_of,
    fingerprint,
    pending_of,
)
from helmdash.gateway.door import Header
from helmdash.gateway.rewriting import Form
from helmdash.operations import care
from helmdash.providers.wire import ChatRequest, Object

NONE, GUIDE, CLEAR = "none", "guide", "clear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """What is sent of a client's request: its bytes, their JSON, and the same in plain values."""

    body: bytes
    parsed: dict[str, Any]
    request: ChatRequest


@dataclass(slots=True, kw_only=True)
class Care:
    """What was done for one call. `countdown`: generations left before a fresh start."""

    history: History
    conversation: str | None = None
    action: str = NONE
    round_number: int | None = None
    generation: int | None = None
    countdown: int | None = None
    shorten: Callable[[], Awaitable[Sending | None]] | None = None

    def headers(self) -> list[Header]:
        """What the client is told."""
        told: list[Header] = [(b"x-helmdash-remediation", self.action.encode())]
        if self.conversation is not None:
            told.append((b"x-helmdash-conversation", self.conversation.encode()))
        if self.round_number is not None:
            told.append((b"x-helmdash-round", b"%d" % self.round_number))
        if self.countdown is not None:
            told.append((b"x-helmdash-countdown", b"%d" % self.countdown))
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A request as it came, and what its entries say."""

    form: Form
    body: bytes
    parsed: dict[str, Any]
    items: Sequence[Object] = field(repr=False)
    entries: Sequence[Entry] = field(repr=False)

    def for_clear(self) -> care.ClientHistory:
        """What a clear would drop of it, and what it would carry over."""
        end = end_of(self.entries)
        return care.ClientHistory(
            messages=end,
            digest=fingerprint(self.items[:end]),
            carried=pending_of(self.entries, end),
            draft=lambda: dict(zip(HEADINGS, facts_of(self.entries[:end]), strict=False)),
        )

    def beginning(self, restart: care.Restart | None) -> Beginning:
        """What was dropped of it. Nothing, where the client itself has changed its beginning."""
        if restart is None:
            return Beginning()
        count = restart.messages
        if count > len(self.items):
            return Beginning()
        if count and fingerprint(self.items[:count]) != restart.digest:
            return Beginning()
        return Beginning(
            entries=count,
            carried=restart.carried,
            package=restart.package,
            inserts=restart.inserts,
        )
