"""Why a provider's cache did not have the beginning of a prompt.

A cache of prompts holds beginnings: tools first, then the system prompt, then the messages
(Anthropic's documentation; OpenAI's says the same of what stands first). A call that carries a
conversation on could read all that the main call before it sent, so what it did not read of that
was missed, and whatever changed first is why. Nothing is guessed: a change is told where the two
prompts differ, by the texts that the project keeps or by sizes that both calls told, and an expiry
only as a possibility. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final

from helmdash.answers import Doc, answer
from helmdash.core.calls.tool_schemas import OfferedTools
from helmdash.core.evidence.net_value import Prompt, may_have_expired

# Told with every figure. Other rules are another version.
METHOD: Final = "cache-miss-1"
# OpenAI caches by 128 tokens, and no provider to the last one: less than two steps, or than a tenth
# of what could be read, is no miss.
_LEAST_MISSED: Final = 256
_LEAST_MISSED_SHARE: Final = 0.1
# Neither OpenAI nor Anthropic keeps shorter beginnings; some of Anthropic's models keep none of
# less than 4,096, which is not told here.
LEAST_CACHED_TOKENS: Final = 1024
# Of tools that were changed: enough to see which server or mode went.
MOST_NAMED: Final = 5


class MissCause(StrEnum):
    """What the cache missed by."""

    MODEL_CHANGED = "model_changed"
    FRESH_START = "fresh_start"
    TOOLS_CHANGED = "tools_changed"
    SYSTEM_CHANGED = "system_changed"
    MESSAGES_CHANGED = "messages_changed"
    # The prompt before was still being answered.
    OVERLAPPED = "overlapped"
    TOO_SHORT = "too_short"
    # The call before neither read from a cache nor wrote to one.
    NOTHING_HELD = "nothing_held"
    MAY_HAVE_EXPIRED = "may_have_expired"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedCall:
    """A main call, as far as a cache of its prompt goes by it. None: not told, or not kept.

    upstream_model: as its provider named what answered. latency_ms: until its answer was there.
    messages: of each, what tells it with all before it; a system prompt is the first.
    """

    id: str
    model_key: str
    upstream_model: str | None
    provider: str | None
    round_number: int | None
    prompt: Prompt
    started_at: datetime
    latency_ms: int | None
    sent_bytes: int | None
    estimate_tokens: int | None
    tools_bytes: int | None
    system_bytes: int | None
    sent_messages: int | None
    offered: OfferedTools | None = None
    messages: Sequence[str] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether what it sent is its prompt, as far as anybody told: one that goes on from what
        its provider keeps sent a part, by whose bytes no tokens are estimated."""
        return self.sent_bytes is None or self.estimate_tokens is not None

    def is_under_way(self, at: datetime) -> bool:
        """Whether it was still being answered, as far as that is known."""
        took = self.latency_ms
        return took is not None and at < self.started_at + timedelta(milliseconds=took)


@answer("ChangedTools")
@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedTools:
    """Tools that one of two calls offered and the other did not, or with another schema, as far as
    they were told; at most five names each."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


@answer("CacheMiss")
@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMiss:
    """What the provider's cache did not have of a prompt, although the call before had sent it."""

    cause: Annotated[MissCause, Doc("What changed first, or what else is known.")]
    missed_tokens: Annotated[int, Doc("Of `readable_tokens` those that were not read.")]
    readable_tokens: Annotated[
        int, Doc("What a cache could have of this prompt: the one before, at most this one.")
    ]
    same_messages: Annotated[
        int | None,
        Doc("Messages that both prompts begin with. Null: their texts are not kept."),
    ]
    tools: Annotated[
        ChangedTools | None, Doc("Which tools changed. Null: none did, or nobody told.")
    ]
    seconds_since: Annotated[float, Doc("From the beginning of the call before to this one's.")]
    before: Annotated[str, Doc("The id of the call before.")]
    method: str = METHOD

    @property
    def since(self) -> timedelta:
        """`seconds_since` as a length of time."""
        return timedelta(seconds=self.seconds_since)


def find_cache_miss(before: CachedCall, call: CachedCall) -> CacheMiss | None:
    """What a call's prompt was not read from the cache of, and why.

    before: the main call before it in its conversation. None: the cache had nearly all, one of the
    calls does not tell, or they were not made one after the other.
    """
    had, has, read = before.prompt.tokens, call.prompt.tokens, call.prompt.cached
    if had is None or has is None or read is None:
        return None
    # What is told late is numbered behind calls that were made after it; history is of no round.
    is_history = before.round_number is None or call.round_number is None
    if is_history or call.started_at < before.started_at:
        return None
    readable = min(had, has)
    missed = readable - read
    if missed < max(_LEAST_MISSED, readable * _LEAST_MISSED_SHARE):
        return None
    # What differs in a part of a prompt is no change of the prompt.
    are_whole = before.is_whole and call.is_whole
    same = _same_messages(before, call) if are_whole else None
    tools = _changed_tools(before.offered, call.offered) if are_whole else None
    change = _change(before, call, same, tools) if are_whole else None
    return CacheMiss(
        cause=_cause(before, call, readable, change, same),
        missed_tokens=missed,
        readable_tokens=readable,
        same_messages=same,
        tools=tools,
        seconds_since=(call.started_at - before.started_at).total_seconds(),
        before=before.id,
    )


def _cause(
    before: CachedCall, call: CachedCall, readable: int, change: MissCause | None, same: int | None
) -> MissCause:
    if any(map(_differ, _answerer(before), _answerer(call))):
        return MissCause.MODEL_CHANGED
    if readable < LEAST_CACHED_TOKENS:
        return MissCause.TOO_SHORT
    if before.is_under_way(call.started_at):
        return MissCause.OVERLAPPED
    if before.round_number != call.round_number:
        return MissCause.FRESH_START
    # What stands before a message that changed could still be read.
    is_rewritten = change is MissCause.MESSAGES_CHANGED
    if change is not None and (not is_rewritten or call.prompt.cached or same == 0):
        return change
    if before.prompt.cached == 0 and before.prompt.written == 0:
        return MissCause.NOTHING_HELD
    if may_have_expired(before.started_at, call.started_at):
        return MissCause.MAY_HAVE_EXPIRED
    return MissCause.UNKNOWN if change is None else change


def _change(
    before: CachedCall, call: CachedCall, same: int | None, tools: ChangedTools | None
) -> MissCause | None:
    """What differs of two whole prompts, in their order: what comes first breaks all behind it."""
    if tools or _differ(before.tools_bytes, call.tools_bytes):
        return MissCause.TOOLS_CHANGED
    # The texts tell more than sizes: a system message that is added at the end changes no system
    # prompt.
    if before.messages is not None and same == len(before.messages):
        return None
    if _differ(before.system_bytes, call.system_bytes) or (same == 0 and before.system_bytes):
        return MissCause.SYSTEM_CHANGED
    return MissCause.MESSAGES_CHANGED if _is_rewritten(before, call, same) else None


def _answerer(call: CachedCall) -> tuple[str | None, ...]:
    """Who answered, by each of whose names a cache is another one."""
    return call.model_key, call.upstream_model, call.provider


def _differ(old: object, new: object) -> bool:
    """Whether both are known, and not the same."""
    return old is not None and new is not None and old != new


def _same_messages(before: CachedCall, call: CachedCall) -> int | None:
    """How many messages both begin with; None where one's are not kept."""
    if before.messages is None or call.messages is None:
        return None
    pairs = zip(before.messages, call.messages, strict=False)
    return next(
        (at for at, (old, new) in enumerate(pairs) if old != new),
        min(len(before.messages), len(call.messages)),
    )


def _is_rewritten(before: CachedCall, call: CachedCall, same: int | None) -> bool:
    """Whether the prompt before is no longer the beginning of this one."""
    if same is not None and before.messages is not None:
        return same < len(before.messages)
    if before.sent_messages is None or call.sent_messages is None:
        return False
    return call.sent_messages < before.sent_messages


def _changed_tools(old: OfferedTools | None, new: OfferedTools | None) -> ChangedTools | None:
    if old is None or new is None:
        return None
    was, now = old.by_name, new.by_name
    # Of more tools than a call keeps the smallest are not known, and none is said to be gone.
    found = ChangedTools(
        added=_named(now, was) if len(was) == old.count else (),
        removed=_named(was, now) if len(now) == new.count else (),
        changed=tuple(name for name in now if name in was and was[name] != now[name])[:MOST_NAMED],
    )
    return found if found.added or found.removed or found.changed else None


def _named(tools: Mapping[str, int], others: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(name for name in tools if name not in others)[:MOST_NAMED]
