"""A request as it came in: what its headers ask for, and the JSON of its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from helmdash.core.calls.capture import CONVERSATION_CHARS, CONVERSATION_PATTERN
from helmdash.core.calls.lanes import Lane
from helmdash.doors.faults import BadBody
from helmdash.doors.validation import read_object
from helmdash.gateway.refusals import bad_request
from helmdash.queries.access.access import BUDGET_MODES

_WORD = re.compile(r"[^\x00-\x1f\x7f]{1,128}")
_PURPOSE = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_CONVERSATION = re.compile(CONVERSATION_PATTERN)
# Our own headers, each with `x-helmdash-` before it.
_NAMES = (
    "conversation", "parent", "lane", "pack", "purpose", "correlation-id", "project", "budget",
    "remediation",
)  # fmt: skip
_HEADERS = {b"x-helmdash-" + name.encode(): name for name in _NAMES}
_SWITCH = {b"on": True, b"off": False}
# What clients call a conversation in their `metadata`, best first.
_METADATA_NAMES = (
    "helmdash_conversation",
    "conversation",
    "conversation_id",
    "session_id",
    "thread_id",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """What the `x-helmdash-*` headers of a request ask for; None where they are silent."""

    conversation: str | None = None
    parent: str | None = None
    lane: Lane | None = None
    pack: str | None = None
    purpose: str | None = None
    correlation_id: str | None = None
    project: str | None = None
    budget: str | None = None
    remediation: bool | None = None
    is_retry: bool = False


def options_of(headers: Mapping[bytes, bytes]) -> RequestOptions:
    """Read our own headers. Raises Refusal (400) naming the one that is wrong."""
    retries = headers.get(b"x-stainless-retry-count", b"0")
    told = {
        name: value
        for header, name in ({} if _HEADERS.keys().isdisjoint(headers) else _HEADERS).items()
        if (value := headers.get(header, b"").strip())
    }
    if not told:
        return _RETRY if retries not in (b"0", b"") else _SILENT
    return RequestOptions(
        conversation=_conversation("conversation", told.get("conversation")),
        parent=_parent(told.get("parent"), told.get("conversation")),
        lane=_lane(told.get("lane")),
        pack=_word("pack", told.get("pack")),
        purpose=_purpose(told.get("purpose")),
        correlation_id=_word("correlation-id", told.get("correlation-id")),
        project=_word("project", told.get("project")),
        budget=_budget(told.get("budget")),
        remediation=_switch("remediation", told.get("remediation")),
        is_retry=retries not in (b"0", b""),
    )


_SILENT = RequestOptions()
_RETRY = RequestOptions(is_retry=True)


def conversation_of(metadata: Mapping[str, Any] | None) -> str | None:
    """The conversation that a request's own `metadata` names; None where it names none in a usable
    way."""
    if not metadata or not isinstance(metadata, Mapping):
        return None
    for name in _METADATA_NAMES:
        value = metadata.get(name)
        if isinstance(value, str) and _is_conversation(value):
            return value
    return None


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises Refusal (400) that says what is wrong and where."""
    try:
        return read_object(body)
    except BadBody as fault:
        raise bad_request(str(fault), code="invalid_json") from None


def _conversation(name: str, value: bytes | None) -> str | None:
    if value is None:
        return None
    text = value.decode("latin-1")
    if not _is_conversation(text):
        raise bad_request(
            f"x-helmdash-{name}: use 1 to 255 of the characters A-Z a-z 0-9 . _ : @ + = -, "
            "and not only dots."
        )
    return text


def _parent(value: bytes | None, conversation: bytes | None) -> str | None:
    if value is not None and conversation in (None, value):
        raise bad_request(
            "x-helmdash-parent: goes with x-helmdash-conversation, and names another conversation."
        )
    return _conversation("parent", value)


def _lane(value: bytes | None) -> Lane | None:
    if value is None:
        return None
    text = value.decode("latin-1").lower()
    if text not in [lane.value for lane in Lane]:
        raise bad_request(f"x-helmdash-lane: use {' or '.join(Lane)}.")
    return Lane(text)


def _is_conversation(text: str) -> bool:
    return len(text) <= CONVERSATION_CHARS and _CONVERSATION.fullmatch(text) is not None


def _word(name: str, value: bytes | None) -> str | None:
    if value is None:
        return None
    text = value.decode("utf-8", "replace")
    if not _WORD.fullmatch(text):
        raise bad_request(f"x-helmdash-{name}: use 1 to 128 characters without control characters.")
    return text


def _purpose(value: bytes | None) -> str | None:
    if value is None:
        return None
    text = value.decode("latin-1")
    if not _PURPOSE.fullmatch(text):
        raise bad_request(
            "x-helmdash-purpose: use one word of up to 32 letters a-z, digits, _ and -, "
            "such as chat, plan or verify."
        )
    return text


def _budget(value: bytes | None) -> str | None:
    if value is None:
        return None
    text = value.decode("latin-1").lower()
    if text not in BUDGET_MODES:
        raise bad_request(f"x-helmdash-budget: use one of {', '.join(BUDGET_MODES)}.")
    return text


def _switch(name: str, value: bytes | None) -> bool | None:
    if value is None:
        return None
    if value.lower() not in _SWITCH:
        raise bad_request(f"x-helmdash-{name}: use on or off.")
    return _SWITCH[value.lower()]
