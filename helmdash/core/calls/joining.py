"""One call that comes by several doors is one row: which names tell it, and what each door adds.

A provider's own id is certain: Claude Code's `req_…` stands in a response header, in a log record,
in a span and in the transcript. Codex' log records name no call; there a call of the same
conversation with the same counts, at about the same time, is the same one where it came by another
door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.routes import CallRoute, split_routes
from helmdash.core.calls.usage import Usage

# Where two doors differ, the one that stands first is believed: the gateway saw the bytes, a
# transcript has counts from before the end of a reply.
_STRENGTH: Final = (
    CallRoute.GATEWAY,
    CallRoute.OTLP_LOG,
    CallRoute.OTLP_SPAN,
    CallRoute.TRANSCRIPT,
)
_RANKS: Final = {route.value: rank for rank, route in enumerate(_STRENGTH)}
# Agents that come by several doors, and whose records name a session alike at each.
_AGENTS: Final = frozenset({"claude-code", "codex"})
# A record is written when the reply has ended, which may take minutes.
_LIKE_WITHIN: Final = timedelta(minutes=10)
# So many calls of one conversation with equal counts are told apart, within twenty minutes.
MOST_ALIKE: Final = 16
_DIGEST_BYTES: Final = 16

_FIGURES: Final = (
    "completion_tokens",
    "total_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "latency_ms",
    "ttft_ms",
)
_WORDS: Final = (
    "client_name",
    "client_version",
    "client_window",
    "upstream_model",
    "http_status",
    "sent_bytes",
    "sent_messages",
)
_FINISH: Final = ("finish_reason", "finish_reason_raw")
_CAUSE: Final = ("cause", "cause_rule", "cause_advice", "cause_detail")
_OUTCOME: Final = ("status", "error_code", "error_message")
HEALTH: Final = (
    "prompt_tokens",
    "level",
    "level_reason",
    "limit_tokens",
    "limit_source",
    "optimal_max_tokens",
    "critical_max_tokens",
)
COLUMNS: Final = ("routes", *_FIGURES, *_WORDS, *_FINISH, *_CAUSE, *_OUTCOME, *HEALTH)
"""What another door may add to a call's row, or correct."""


def alike_names(capture: Capture, usage: Usage, at: datetime) -> tuple[str, ...]:
    """Names for calls of one conversation with equal counts, or without any since they failed: the
    first of some minutes, the second and so on; () where nothing can be compared.

    at: when the call began.
    """
    text = _likeness(capture, usage)
    return _numbered(text, at) if text is not None else ()


def alike_places(capture: Capture, usage: Usage, at: datetime) -> tuple[str, ...]:
    """The names by which a like call is found: those of its own minutes, and of those before or
    after where these are near."""
    text = _likeness(capture, usage)
    if text is None:
        return ()
    around = (at, at - _LIKE_WITHIN, at + _LIKE_WITHIN)
    return tuple(dict.fromkeys(name for each in around for name in _numbered(text, each)))


def _likeness(capture: Capture, usage: Usage) -> str | None:
    comes_elsewhere = any(route.value in _RANKS for route in capture.routes)
    if capture.client_name not in _AGENTS or not comes_elsewhere or not capture.conversation:
        return None
    counts: tuple[object, ...] = (usage.prompt_tokens, usage.completion_tokens)
    if None in counts:
        # A failed call has no counts; its status may be another one at each door.
        if usage.is_available or capture.effective_status != "error":
            return None
        counts = ("error",)
    return repr((capture.client_name, capture.conversation, *counts))


def _numbered(text: str, at: datetime) -> tuple[str, ...]:
    bucket = at.timestamp() // (2 * _LIKE_WITHIN.total_seconds())
    told = f"{text} {bucket:.0f}".encode("utf-8", "replace")
    digest = blake2b(told, digest_size=_DIGEST_BYTES).hexdigest()
    return tuple(f"alike:{digest}:{number}" for number in range(MOST_ALIKE))


def is_about_then(one: datetime, other: datetime) -> bool:
    """Whether two doors may tell of one call by its time."""
    return abs(one - other) <= _LIKE_WITHIN


def may_join(stored: str | None, told: Sequence[CallRoute]) -> bool:
    """Whether a report by these doors adds to a call that came by others.

    A report by the API is no second telling: a repeat of its id changes nothing. stored: as the
    row holds its doors.
    """
    known = split_routes(stored)
    return (
        bool(told)
        and any(route in _RANKS for route in known)
        and all(route.value in _RANKS and route.value not in known for route in told)
    )


def joined(stored: Mapping[str, object], told: Mapping[str, object]) -> dict[str, object]:
    """The columns of a call's row that change when another door tells of it.

    stored, told: columns of the row, and of the row that the second telling alone would have made.
    What only one knows is kept; where they differ, the stronger door is believed.
    """
    is_stronger = _rank(told["routes"]) < _rank(stored["routes"])
    changes: dict[str, object] = {"routes": _both(stored["routes"], told["routes"])}
    for name in _FIGURES:
        if told[name] is not None and (stored[name] is None or is_stronger):
            changes[name] = told[name]
    for name in _WORDS:
        if stored[name] in (None, "") and told[name] not in (None, ""):
            changes[name] = told[name]
    knows_end = bool(told["finish_reason"])
    if knows_end and (is_stronger or not stored["finish_reason"]):
        changes |= _taken(told, _FINISH)
    if is_stronger and told["status"] != stored["status"]:
        changes |= _taken(told, _OUTCOME + _CAUSE)
    elif knows_end and not stored["cause"] and "finish_reason" in changes:
        changes |= _taken(told, _CAUSE)
    prompt = told["prompt_tokens"]
    if prompt is not None and (
        stored["prompt_tokens"] is None or (is_stronger and prompt != stored["prompt_tokens"])
    ):
        changes |= _taken(told, HEALTH)
    return {name: value for name, value in changes.items() if value != stored[name]}


def _taken(told: Mapping[str, object], names: Sequence[str]) -> dict[str, object]:
    return {name: told[name] for name in names}


def _rank(routes: object) -> int:
    """The strongest of the doors; beyond all where there is none."""
    known = split_routes(routes if isinstance(routes, str) else None)
    return min((_RANKS[route] for route in known if route in _RANKS), default=len(_RANKS))


def _both(stored: object, told: object) -> str | None:
    known = {*split_routes(str(stored or "")), *split_routes(str(told or ""))}
    return " ".join(route.value for route in CallRoute if route.value in known) or None
