"""What fixtures/demo_*.json say: the one reader of the demo's data.

All that the demo shows is data there. Times are minutes before the moment it is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from helmdash.core.calls.capture import Capture, CapturedTrim, SentSizes
from helmdash.core.calls.usage import normalise_usage
from helmdash.installation import FIXTURES
from helmdash.operations.demo.composing import composition

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
    sends = conversation.get("sends")
    shared = {
        "conversation": conversation.get("id"),
        "client_name": conversation.get("client_name"),
    }
    for generation, call in enumerate(conversation["calls"], start=1):
        capture = _capture({**call, **shared}, at)
        yield _with_sizes(capture, sends, generation) if sends else capture
        at += timedelta(minutes=conversation["every_minutes"])


def time_of(told: Fixture, now: datetime) -> datetime:
    """When something of a fixture began, which says so in minutes before `now`."""
    return now - timedelta(minutes=told["minutes_ago"])


def _with_sizes(capture: Capture, sends: Fixture, generation: int) -> Capture:
    """With what such a client says of what it sent: sizes, and what they are made of."""
    tokens = normalise_usage(capture.usage).prompt_tokens
    if tokens is None:
        return capture
    size = int(tokens * sends["bytes_per_token"])
    sizes = {name: sends[name] for name in ("system_bytes", "tools_bytes")}
    return replace(
        capture,
        sent=SentSizes(bytes=size, messages=2 * generation, tools_bytes=sizes["tools_bytes"]),
        composition=composition(size, **sizes, shares=sends["tools"]),
    )


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
