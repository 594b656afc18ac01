"""Where a call stands in its conversation: its generation, its round, and what it changes.

Rule "place-6": calls are numbered in the order they are recorded; a call stays in the round that
is open, unless its context was given a fresh start: a compaction opens the next round. A clear
opens it before its first call; what was under way then and is reported late belongs to the round
before, and says nothing about the new one: its prompt would turn a fresh context red. A side call
(core.calls.lanes) is not numbered, and is of no round. A stream that its client asks for again
(core.conversations.repeated_streams) takes the generation of the attempt before it. A call that a
transcript tells of long after a later one was recorded is history: it is numbered, is of no round,
and says nothing about how its conversation stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.values import quick_value

PLACEMENT_VERSION = "place-6"

# How a conversation stands, as its row has it, in a round that has no call yet: nothing of the
# round before is left.
EMPTY_ROUND: Final[Mapping[str, object]] = {
    "level": Level.UNKNOWN.value,
    "severity": LEVELS[Level.UNKNOWN].severity,
    "level_reason": HealthReason.USAGE_UNAVAILABLE.value,
    "known_level": "",
    "prompt_tokens": None,
    "recent_failures": 0,
    "latest_cause": None,
    "cut_generation": None,
    "newest_stream": None,
}


@quick_value(frozen=True, slots=True, kw_only=True)
class ConversationState:
    """How a conversation stands after its newest call; `generation` 0 means no call yet,
    `known_level` None that no call could be judged."""

    round_number: int = 1
    generation: int = 0
    level: Level = Level.UNKNOWN
    known_level: Level | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class Placement:
    """One call taken in: the standing after it, and the level it left; None: the level stayed."""

    after: ConversationState
    is_change: bool
    from_level: Level | None


def take_call(standing: ConversationState, level: Level, *, opens_round: bool = False) -> Placement:
    """The next generation with its level. Unknown keeps the last known level beside it.

    `opens_round`: the call's context had a fresh start; the first call of all opens round 1 anyway.
    """
    is_first = standing.generation == 0
    known = standing.known_level if level is Level.UNKNOWN else level
    after = ConversationState(
        round_number=standing.round_number + (opens_round and not is_first),
        generation=standing.generation + 1,
        level=level,
        known_level=known,
    )
    return Placement(
        after=after,
        is_change=is_first or level is not standing.level,
        from_level=None if is_first else standing.level,
    )


# A call that was under way at a clear began at most so long before it: the longest read timeout.
_LONGEST_CALL = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestClear:
    """When a conversation was cleared, and the last generation known to be under way then."""

    at: datetime
    late_until: int


def is_late(
    *,
    round_number: int,
    began_in: int | None,
    started_at: datetime | None,
    generation: int,
    cleared: LatestClear | None,
    newest_at: datetime | None = None,
    is_as_large: Callable[[], bool] = lambda: False,
) -> bool:
    """Whether a call belongs to the round before the open one, `round_number`.

    `began_in`: the round it was begun in, where the caller knows. Otherwise its own time decides,
    `started_at`. Clocks of callers cannot be trusted, so where no call is known to have been under
    way, only a time counts that such a call can have, and that the conversation's newest call
    (`newest_at`) does not have as well. `generation`: the number it gets. `is_as_large`: whether
    its prompt still has the size of the round before; asked where its time says nothing, for a
    report without one counts as begun when it came in.
    """
    if began_in is not None:
        return began_in < round_number
    if cleared is None:
        return False
    is_earlier = started_at is not None and started_at < cleared.at
    if generation <= cleared.late_until:
        return is_earlier or is_as_large()
    if started_at is None or not is_earlier:
        return False
    return cleared.at - started_at <= _LONGEST_CALL and started_at != newest_at


def is_history(*, is_transcript: bool, started_at: datetime, newest_at: datetime) -> bool:
    """Whether a call was made before what is recorded of its conversation, whose newest call began
    at `newest_at`: an agent's earlier transcript is imported behind its calls by another door.

    is_transcript: no other door told of it. Transcripts alone count: they tell their calls in
    order, and their times are no report's guess. A call on its way, or one of a slow clock, is
    behind by _LONGEST_CALL at most.
    """
    return is_transcript and is_gone_by(started_at, newest_at=newest_at)


def is_gone_by(at: datetime, *, newest_at: datetime) -> bool:
    """Whether a conversation went on behind a moment, by more than calls on their way and slow
    clocks are behind."""
    return newest_at - at > _LONGEST_CALL


def is_as_large(before: int | None, prompt_tokens: int | None) -> bool:
    """Whether a prompt has not lost its history: at least half as large, in tokens, as the one
    before.

    Half, for a re-entry package has a fifth of the window (core.care.reminders). Where either is
    None, not known: no.
    """
    return before is not None and prompt_tokens is not None and prompt_tokens * 2 >= before
