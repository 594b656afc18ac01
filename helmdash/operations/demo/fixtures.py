"""What fixtures/demo_*.json say: the one reader of the demo's data.

All that the demo shows is data there. Times are minutes before the moment it is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from helmdash.core.calls.capture import Capture, CapturedTrim, SentSizes
from helmdash.installation import FIXTURES

# An object of a fixture.
Fixture = Mapping[str, Any]


def read_fixture(name: Literal["calls", "care", "catalog", "plans"]) -> dict[str, Any]:
    """The whole of one fixture, from disk at every call: it is loaded once."""
    text = (FIXTURES / f"demo_{name}.json").read_text(encoding="utf-8")
    told: dict[str, Any] = json.loads(text)
    return told


def captures_of(conversation: Fixture, now: datetime) -> Iterator[Capture]:
    """The calls of a conversation in demo_calls.json, each with its time."""
    at = time_of(conversation, now)
    for call in conversation["calls"]:
        yield _capture({**call, "conversation": conversation.get("id")}, at)
        at += timedelta(minutes=conversation["every_minutes"])


def time_of(told: Fixture, now: datetime) -> datetime:
    """When something of a fixture began, which says so in minutes before `now`."""
    return now - timedelta(minutes=told["minutes_ago"])


def _capture(call: Fixture, at: datetime) -> Capture:
    known = dict(call)
    trim, sent, messages = (known.pop(name, None) for name in ("trim", "sent", "messages"))
    return Capture(
        **known,
        trim=CapturedTrim(**trim | {"dropped": tuple(trim["dropped"])}) if trim else None,
        sent=SentSizes(**sent) if sent else None,
        messages=tuple(messages) if messages else None,
        started_at=at,
    )
