"""Why somebody should look at a conversation: it is full, failing, or cut.

Full: its newest prompt is above a line, or was when its usage was last known, or care holds such a
level. Failing: its client refused to go on by itself, its newest call failed, or three of its last
five. Cut: a prompt of the open round was probably cut upstream; what came after it rests on what
was left.

All of it is kept with the conversation and brought forward by each call, so that a list of those
that need somebody asks one narrow index, however many conversations there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Protocol

from helmdash.answers import Doc
from helmdash.core.budgets.levels import Level, line_of

# How many of the newest calls are looked at, and how many of them may not fail.
NEWEST_CALLS: Final = 5
_MANY_FAILED: Final = 3
_ALL: Final = (1 << NEWEST_CALLS) - 1
# Asked of every call.
_CRITICAL, _CAUTION = Level.CRITICAL.value, Level.CAUTION.value
_UNKNOWN, _HEALTHY = Level.UNKNOWN.value, Level.HEALTHY.value


class AttentionReason(StrEnum):
    """Why somebody should look, what is worst first."""

    # First, since ranks are stored: those of the others stay what they were.
    CLIENT_REFUSAL = "client_refusal"
    CRITICAL = "critical"
    OFTEN_FAILED = "often_failed"
    WAS_CRITICAL = "was_critical"
    NEWEST_FAILED = "newest_failed"
    SUSPECTED_CUT = "suspected_cut"
    CAUTION = "caution"
    WAS_CAUTION = "was_caution"


# Trouble of calls, whatever the prompt's level is.
FAILING: Final = frozenset(
    {
        AttentionReason.CLIENT_REFUSAL,
        AttentionReason.OFTEN_FAILED,
        AttentionReason.NEWEST_FAILED,
    }
)
_RANKS: Final = {each: len(AttentionReason) - at for at, each in enumerate(AttentionReason)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One reason, and the same in words."""

    reason: AttentionReason
    detail: Annotated[str, Doc("The reason in words, with its figures.")]


class Standing(Protocol):
    """What is known of a conversation, as its row has it; "" and None: nothing.

    held_level: the level that care holds in the open round. recent_failures: the newest calls as
    bits, the newest one lowest, set where a call failed. cut_generation: the newest call of the
    open round whose prompt was probably cut. client_refusal: what the client refused by itself
    since the newest call.
    """

    @property
    def level(self) -> str: ...
    @property
    def known_level(self) -> str: ...
    @property
    def held_level(self) -> str | None: ...
    @property
    def prompt_tokens(self) -> int | None: ...
    @property
    def optimal_max_tokens(self) -> int: ...
    @property
    def critical_max_tokens(self) -> int | None: ...
    @property
    def recent_failures(self) -> int: ...
    @property
    def latest_cause(self) -> str | None: ...
    @property
    def cut_generation(self) -> int | None: ...
    @property
    def client_refusal(self) -> str | None: ...


def with_newest(recent_failures: int, *, is_failed: bool) -> int:
    """The newest calls as bits, one call later."""
    return (recent_failures << 1 | is_failed) & _ALL


def rank_of(standing: Standing) -> int:
    """How much somebody should look: that of the worst reason; 0: not at all."""
    if (
        standing.level == _HEALTHY
        and not (standing.recent_failures or standing.client_refusal)
        and standing.cut_generation is None
    ):
        return 0  # most by far, and all reasons but these are of other levels
    return next((_RANKS[each] for each in _reasons(standing)), 0)


def rank_after(attention: int, *, before: int, now: int) -> int:
    """The rank to keep where a conversation is known better, or cared for, and no call came since.

    attention: the rank that is kept. before, now: those of its reasons. What somebody has put aside
    (a kept rank of 0 though there is a reason) stays so, unless it turns out to be worse.
    """
    is_put_aside = before > 0 and not attention
    return 0 if is_put_aside and now <= before else now


def attention_of(standing: Standing) -> tuple[Attention, ...]:
    """Every reason, the worst first."""
    return tuple(
        Attention(reason=each, detail=_tell(each, standing)) for each in _reasons(standing)
    )


def _reasons(standing: Standing) -> Iterator[AttentionReason]:
    failed = standing.recent_failures.bit_count()
    known = (standing.known_level, standing.held_level)
    was = known if standing.level == _UNKNOWN else ()
    if standing.client_refusal:
        yield AttentionReason.CLIENT_REFUSAL
    if standing.level == _CRITICAL:
        yield AttentionReason.CRITICAL
    if failed >= _MANY_FAILED:
        yield AttentionReason.OFTEN_FAILED
    if _CRITICAL in was:
        yield AttentionReason.WAS_CRITICAL
    if standing.recent_failures & 1:
        yield AttentionReason.NEWEST_FAILED
    if standing.cut_generation is not None:
        yield AttentionReason.SUSPECTED_CUT
    if standing.level == _CAUTION:
        yield AttentionReason.CAUTION
    if _CAUTION in was and _CRITICAL not in was:
        yield AttentionReason.WAS_CAUTION


def _tell(reason: AttentionReason, standing: Standing) -> str:
    match reason:
        case AttentionReason.CLIENT_REFUSAL:
            return f"its client refused to go on, without a request: {standing.client_refusal}"
        case AttentionReason.CRITICAL | AttentionReason.CAUTION:
            return _over(Level(reason.value), standing)
        case AttentionReason.OFTEN_FAILED:
            failed = standing.recent_failures.bit_count()
            return f"{failed} of the last {NEWEST_CALLS} calls failed"
        case AttentionReason.NEWEST_FAILED:
            return f"the newest call failed: {standing.latest_cause or 'no cause known'}"
        case AttentionReason.SUSPECTED_CUT:
            return f"the prompt of generation {standing.cut_generation:,} was probably cut upstream"
        case AttentionReason.WAS_CRITICAL:
            return _was(Level.CRITICAL, standing)
        case AttentionReason.WAS_CAUTION:
            return _was(Level.CAUTION, standing)


def _was(level: Level, standing: Standing) -> str:
    """Care may hold a level that the newest known prompt was below of again."""
    if standing.known_level == level.value:
        return f"was {level.value} when its usage was last known"
    return f"care still counts it as {level.value}"


def _over(level: Level, standing: Standing) -> str:
    line = line_of(level, standing)
    if line is None or standing.prompt_tokens is None:
        return f"above its {level.value} line"
    return f"{standing.prompt_tokens - line:,} over its {level.value} line of {line:,}"
