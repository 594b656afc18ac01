"""Codex: its thread, its sub-agents' threads, its side calls and its contexts.

Tried with 0.169.0. `session-id` is that of the root thread; `thread-id` the own one, which a
sub-agent has to itself; `x-codex-window-id` is `<thread>:<n>`, and n rises with every compaction.
What a request is for stands in `x-codex-turn-metadata`. Older versions write `session_id`.
`x-client-request-id` is the thread again, and no request's id.
"""

from __future__ import annotations

from collections.abc import Mapping

from helmdash.core.agents.names import foreign_name, read_object
from helmdash.core.agents.side_requests import COMPACTION
from helmdash.core.agents.values import AgentCall
from helmdash.core.calls.lanes import Lane

NAME = "codex"

OWN_HEADERS = (b"x-codex-window-id", b"x-codex-turn-metadata", b"x-openai-subagent")
# What `request_kind` says of requests that are no turn; of a kind nobody knows nothing is said.
_SIDE_KINDS = {"compaction": COMPACTION, "memory": "memory", "title": "title", "prewarm": "prewarm"}
# A number of compactions; anything longer is none.
_MOST_DIGITS = 9


def read_codex(headers: Mapping[bytes, bytes], *, client: str | None) -> AgentCall | None:
    """What the request says; None where it is not Codex'. headers: in small letters.

    client: who the user agent says it is (core.conversations.clients); None: it says nothing.
    """
    if client != NAME and not any(name in headers for name in OWN_HEADERS):
        return None
    turn = read_object(_word(headers, b"x-codex-turn-metadata") or "")
    thread = (
        _word(headers, b"thread-id", b"thread_id")
        or _text(turn, "thread_id")
        or _word(headers, b"session-id", b"session_id", b"conversation_id")
    )
    if thread is None:
        return None
    above = _word(headers, b"x-codex-parent-thread-id") or _text(turn, "parent_thread_id")
    purpose = _purpose(headers, turn)
    is_part = above is not None and above != thread
    return AgentCall(
        conversation=foreign_name(thread),
        parent=foreign_name(above) if is_part and above else None,
        part=thread if is_part else None,
        purpose=purpose,
        lane=Lane.SIDE if purpose else None,
        context=_context(headers, turn),
    )


def _purpose(headers: Mapping[bytes, bytes], turn: Mapping[str, object]) -> str | None:
    kind = _text(turn, "request_kind")
    if kind is not None:
        return _SIDE_KINDS.get(kind)
    if _word(headers, b"x-openai-memgen-request") == "true":
        return "memory"
    return COMPACTION if _word(headers, b"x-openai-subagent") == "compact" else None


def _context(headers: Mapping[bytes, bytes], turn: Mapping[str, object]) -> str | None:
    """The number of the thread's context: as the window's id ends, else as the metadata says."""
    number = (_word(headers, b"x-codex-window-id") or "").rpartition(":")[2]
    if not number:
        told = turn.get("window_number")
        number = str(told) if type(told) is int else ""
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    return str(int(number)) if is_number else None


def _text(told: Mapping[str, object], name: str) -> str | None:
    value = told.get(name)
    return value.strip() or None if isinstance(value, str) else None


def _word(headers: Mapping[bytes, bytes], *names: bytes) -> str | None:
    for name in names:
        value = headers.get(name, b"").decode("latin-1").strip()
        if value:
            return value
    return None
