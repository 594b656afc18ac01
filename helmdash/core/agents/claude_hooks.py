"""What Claude Code tells by its hooks and its status line (code.claude.com/docs/en/hooks, tried
with 2.1.197).

Neither carries the tokens of a call, so neither is one. They tell what no request shows: that the
client compacted, that it refused a turn by itself, and which window it counts on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from helmdash.core.agents.names import agent_name
from helmdash.core.calls.usage import LARGEST_COUNT
from helmdash.core.calls.withheld import kept_code, kept_words

DETAIL_CHARS = 400
_KEY_CHARS = 128
# Near its own limit it answers with this sentence and sends nothing; a provider's refusal, which is
# recorded as a call, comes with a status or with both numbers.
_TOO_LONG = re.compile(r"prompt is too long", re.I)
_OF_A_REQUEST = re.compile(r"\b[45]\d\d\b|tokens\s*>", re.I)
_COMPACTED = "PostCompact"
_FAILED = "StopFailure"


class ClientEventKind(StrEnum):
    """What a client tells of a conversation that is no call."""

    COMPACTION = "client_compaction"
    REFUSAL = "client_refusal"  # it refused a turn by itself, and no request was sent
    FAILURE = "client_failure"  # a turn ended by an error of a request


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEvent:
    """One such event. key: the same for the same event told twice; "": it cannot be told apart.

    detail: the client's own words, short. words: those of a provider's error, which may quote the
    prompt.
    """

    kind: ClientEventKind
    conversation: str
    key: str
    detail: str = ""
    words: str = ""

    def told(self, *, keeps_texts: bool) -> str:
        """What is kept of both, in a project that keeps texts or one that keeps none."""
        words = self.words if keeps_texts else _kept(self.words)
        return ": ".join(filter(None, (self.detail, words)))[:DETAIL_CHARS]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatus:
    """What a status line is given: its session, and the window that the client counts on (tokens;
    None: not told)."""

    conversation: str
    window: int | None
    model: str


class HookProblem(ValueError):
    """Neither a hook of an agent nor a status line's input; the message names the member."""


def read_hook(body: Mapping[str, object]) -> ClientEvent | None:
    """The event that a hook tells; None: of this hook nothing is kept. Raises HookProblem."""
    name = _text(body, "hook_event_name")
    conversation = _conversation(body)
    words = ""
    if name == _COMPACTED:
        kind, detail = ClientEventKind.COMPACTION, _text(body, "trigger")
    elif name == _FAILED:
        error, details = _text(body, "error"), _text(body, "error_details")
        said = f"{details} {_text(body, 'last_assistant_message')}"
        is_own = bool(_TOO_LONG.search(said)) and not _OF_A_REQUEST.search(said)
        if is_own:
            kind, detail = ClientEventKind.REFUSAL, ": ".join(filter(None, (error, details)))
        else:
            kind, detail, words = ClientEventKind.FAILURE, error, details
    else:
        return None
    turn = _text(body, "prompt_id")
    return ClientEvent(
        kind=kind,
        conversation=conversation,
        key=f"{name} {turn}"[:_KEY_CHARS] if turn else "",
        detail=" ".join(detail.split())[:DETAIL_CHARS],
        words=" ".join(words.split())[:DETAIL_CHARS],
    )


def is_status(body: Mapping[str, object]) -> bool:
    """Whether a body is what a status line is given: it names no hook."""
    return "hook_event_name" not in body


def read_status(body: Mapping[str, object]) -> ClientStatus:
    """A status line's input. Raises HookProblem."""
    told = body.get("context_window")
    window = told.get("context_window_size") if isinstance(told, Mapping) else None
    model = body.get("model")
    is_count = isinstance(window, int) and not isinstance(window, bool)
    return ClientStatus(
        conversation=_conversation(body),
        window=window if is_count and 0 < window <= LARGEST_COUNT else None,  # type: ignore[operator]
        model=_text(model, "id") if isinstance(model, Mapping) else "",
    )


def _kept(words: str) -> str:
    """A code such as `too_few_groups` is the client's own."""
    return words if kept_code(words, ()) == words else kept_words(words) or ""


def _conversation(body: Mapping[str, object]) -> str:
    session = _text(body, "session_id")
    name = agent_name(session, _text(body, "agent_id") or None) if session else None
    if name is None:
        raise HookProblem("session_id: this has to be a string that is not empty")
    return name


def _text(body: Mapping[str, object], name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise HookProblem(f"{name}: this has to be a string")
    return value.replace("\x00", "").strip()
