"""One call that comes by several doors is one row: which names tell it, and what each door adds.

A provider's own id is certain: Claude Code's `req_…` stands in a response header, in a log record,
in a span and in the transcript. Codex' log records name no call; there a call of the same
conversation with the same counts, at about the same time, is the same one where it came by another
door. Gemini CLI's requests name no conversation. Its telemetry has the reply's id, its chats have
not: there a call is the same one with the same model and counts, and its end at the same moment. So
it is with a failed one, which has neither a reply nor counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_COMPARED: Final = frozenset(_STRENGTH)
_BY_API: Final = (CallRoute.API,)
# Agents that come by several doors, and whose records name a session alike at each.
_AGENTS: Final = frozenset({"claude-code", "codex", "gemini-cli", "opencode", "pi", "qwen-code"})
# A record is written when the reply has ended, which may take minutes.
_LIKE_WITHIN: Final = timedelta(minutes=10)
# So many calls of one conversation with equal counts are told apart, within twenty minutes.
MOST_ALIKE: Final = 16
# Agents whose requests name no session, so that a transcript has the figures and the moment of the
# end alone to be known by, and a failed call the latter. Tried with Gemini CLI 0.61.0: it wrote
# 60 ms after the gateway's end, and clocks that are set by a network differ by less than a second.
_UNNAMED: Final = ("gemini-cli", "qwen-code")
_UNNAMED_DOORS: Final = frozenset({CallRoute.GATEWAY, CallRoute.OTLP_LOG, CallRoute.TRANSCRIPT})
# More than lies between a user's clock and ours.
_REPLY_WITHIN: Final = timedelta(minutes=1)
# Ends this near are compared, and none that are three times as far apart.
_END_WITHIN: Final = timedelta(seconds=2)
# Equal in all counts and so near in time, or in the reply's id as well, is a program that runs
# itself several times at once.
_FEW_ALIKE: Final = 4
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
_ZERO_IF_UNTOLD: Final = frozenset({"cached_tokens", "cache_write_tokens", "reasoning_tokens"})
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


@dataclass(frozen=True, slots=True)
class Likeness:
    """What two doors would tell alike of one call, and at about which moment."""

    text: str
    at: datetime
    within: timedelta
    most: int

    @property
    def names(self) -> tuple[str, ...]:
        """Names for calls that are alike: the first about then, the second and so on."""
        return self._numbered(self.at)

    @property
    def places(self) -> tuple[str, ...]:
        """The names by which a like call is found: those of about then, and of a while before or
        after where these are near."""
        around = (self.at, self.at - self.within, self.at + self.within)
        return tuple(dict.fromkeys(name for each in around for name in self._numbered(each)))

    def _numbered(self, at: datetime) -> tuple[str, ...]:
        bucket = at.timestamp() // (2 * self.within.total_seconds())
        told = f"{self.text} {bucket:.0f}".encode("utf-8", "replace")
        digest = blake2b(told, digest_size=_DIGEST_BYTES).hexdigest()
        return tuple(f"alike:{digest}:{number}" for number in range(self.most))


def likenesses(capture: Capture, usage: Usage, at: datetime) -> tuple[Likeness, ...]:
    """By what a call is known that another door told without any of its ids, the surest first; ()
    where nothing can be compared.

    at: when the call began.
    """
    # Most by far, and to look words of an enumeration up takes longer than the rest.
    if capture.routes == _BY_API or _COMPARED.isdisjoint(capture.routes):
        return ()
    found = (
        _by_reply(capture, usage, at),
        _in_conversation(capture, usage, at),
        _by_figures(capture, usage, at),
    )
    return tuple(likeness for likeness in found if likeness is not None)


def _by_reply(capture: Capture, usage: Usage, at: datetime) -> Likeness | None:
    """The id of a reply, its model and counts: some servers give all their replies one id."""
    if capture.reply_id is None:
        return None
    model = capture.upstream_model or capture.model
    counts = (usage.prompt_tokens, usage.completion_tokens)
    text = repr((capture.client_name, capture.reply_id, model, *counts))
    return Likeness(text, _end(capture, at), _REPLY_WITHIN, _FEW_ALIKE)


def _in_conversation(capture: Capture, usage: Usage, at: datetime) -> Likeness | None:
    """The counts of a call of one conversation, or that it has none since it failed."""
    if capture.client_name not in _AGENTS or not capture.conversation:
        return None
    counts: tuple[object, ...] = (usage.prompt_tokens, usage.completion_tokens)
    if None in counts:
        # A failed call has no counts; its status may be another one at each door.
        if usage.is_available or capture.effective_status != "error":
            return None
        counts = ("error",)
    text = repr((capture.client_name, capture.conversation, *counts))
    return Likeness(text, at, _LIKE_WITHIN, MOST_ALIKE)


def _by_figures(capture: Capture, usage: Usage, at: datetime) -> Likeness | None:
    """The model, all counts and the end of a call, of which a door knows no conversation; of a
    failed one, which has no counts, the model and the end."""
    if capture.client_name not in _UNNAMED or not _UNNAMED_DOORS.issuperset(capture.routes):
        return None
    # The gateway's model may name its upstream before it.
    model = capture.model.rpartition("/")[2]
    counts: tuple[object, ...]
    if not usage.is_available and capture.effective_status != "success":
        # Its status may be another one at each door.
        counts = ("failed",)
    elif usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    else:
        # What is not told is zero in a transcript.
        told = (usage.prompt_tokens, usage.completion_tokens)
        counts = (*told, usage.cached_tokens or 0, usage.reasoning_tokens or 0)
    text = repr((capture.client_name, model, *counts))
    return Likeness(text, _end(capture, at), _END_WITHIN, _FEW_ALIKE)


def _end(capture: Capture, at: datetime) -> datetime:
    return at + timedelta(milliseconds=capture.latency_ms or 0)


# How a sub-agent is named of which a log record tells the kind alone (core.telemetry.claude).
BY_KIND: Final = ":agent:"
LOGGED_BY_KIND: Final = "claude-code"


def session_name(capture: Capture) -> str | None:
    """A name of a call that leads from what its conversation is called here to the one that another
    door knows: from a session where the gateway names none, and from the kind of a sub-agent where
    that has an id. None where all doors name it alike."""
    if not capture.conversation or not (is_by_kind(capture) or capture.client_name in _UNNAMED):
        return None
    return alias_of(str(capture.client_name), capture.conversation)


def alias_of(client: str, conversation: str) -> str:
    """The name of a call by which a further name of its conversation is found."""
    told = repr((client, conversation)).encode("utf-8", "replace")
    return f"session:{blake2b(told, digest_size=_DIGEST_BYTES).hexdigest()}"


def aliases_of(conversation: str) -> tuple[str, ...]:
    """All such names that a further name of a conversation may have."""
    return tuple(alias_of(client, conversation) for client in (*_UNNAMED, LOGGED_BY_KIND))


def is_by_kind(capture: Capture) -> bool:
    """Whether a call names its sub-agent by the kind alone, which several may have."""
    if capture.client_name != LOGGED_BY_KIND or not capture.parent:
        return False
    return str(capture.conversation).startswith(f"{capture.parent}{BY_KIND}")


def session_of_agent(capture: Capture) -> str | None:
    """The session of a call that names its sub-agent by an id, which no log record does; None for
    any other."""
    if capture.client_name != LOGGED_BY_KIND or not (capture.parent and capture.conversation):
        return None
    if is_by_kind(capture) or CallRoute.OTLP_LOG in capture.routes:
        return None
    session = capture.conversation.rpartition(":")[0]
    return session or None


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


def joined(
    stored: Mapping[str, object], told: Mapping[str, object], *, is_believed: bool = False
) -> dict[str, object]:
    """The columns of a call's row that change when another door tells of it.

    stored, told: columns of the row, and of the row that the second telling alone would have made.
    What only one knows is kept; where they differ, the stronger door is believed, or the second
    telling in any case (is_believed).
    """
    is_stronger = is_believed or _rank(told["routes"]) < _rank(stored["routes"])
    changes: dict[str, object] = {"routes": _both(stored["routes"], told["routes"])}
    is_written = split_routes(str(told["routes"] or "")) == (CallRoute.TRANSCRIPT.value,)
    for name in _FIGURES:
        if told[name] is None or not (stored[name] is None or is_stronger):
            continue
        # What is not told is zero in a transcript.
        if told[name] or name not in _ZERO_IF_UNTOLD or not is_written:
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
