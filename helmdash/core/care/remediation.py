"""Remediation: what is done about a full context before each generation, as a pure reducer.

Source: "Context Health Monitor" (docs/sources.md; grace, cadence, countdown). Three soft guidances,
then a hard one each cadence; in critical five prompts that count 4 to 0 and then a clear. The state
is stored with the round, so that a restart goes on where it stood. The level held here lags behind
the strict level of a call on the way down; the pages show the strict one. Nothing here reads a
clock, and nothing is remembered in the module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from helmdash.core.budgets.levels import HELD, Level
from helmdash.core.care.stored import whole_of

REMEDIATION_VERSION = "care-1"
# Soft guidances before a hard one, and critical generations before a clear ("Context
# Health Monitor": enough to finish a step, too few to run into the limit).
GRACE = 3
COUNTDOWN = 5

# A held level is left below 95 % of its line, or when this many readings in a row are under it: one
# answer that is a little shorter must not start the countdown afresh.
_LEAVE_PERCENT = 95
_LEAVE_AFTER = 2


class CareAction(StrEnum):
    """What the caller does before the generation starts."""

    NONE = "none"
    GUIDE = "guide"
    RECORD_PROMPT = "record_prompt"
    CLEAR = "clear"


class Strength(StrEnum):
    """How firmly a guidance asks; each strength has a text of its own."""

    SOFT = "soft"
    HARD = "hard"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The newest call's health: its strict level and the lines it was judged by (tokens).

    expected_tokens: what the request about to be sent comes to, by the newest call's own bytes per
    token; None: nobody knows. limit_tokens: what the model takes.
    """

    round_number: int
    generation: int
    level: Level
    prompt_tokens: int | None
    optimal_max_tokens: int
    critical_max_tokens: int | None
    expected_tokens: int | None = None
    limit_tokens: int | None = None
    is_overflow: bool = False  # the provider refused it as too long
    is_first: bool = False  # the only call of its round: clearing again would free nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class CareState:
    """Where remediation stands in one round. `level` is the one held; None is healthy."""

    round_number: int = 1
    generation: int = 0  # the last one decided
    level: Level | None = None
    grace: int = 0  # soft guidances left
    since_hard: int | None = (
        None  # generations counted since the hard one, or the reminder after it
    )
    countdown: int | None = None  # units left; None outside critical
    under_caution: int = 0  # readings in a row under the held line
    under_critical: int = 0
    seen: int = 0  # the newest reading counted for "in a row"
    is_followed: bool = False  # a reminder was written since the latest hard or critical guidance
    braked_at: int | None = None  # the generation at which care stopped clearing
    is_brake_untold: bool = False  # the agent does not know of it: there was no room to say so
    is_released: bool = False  # a person said that it is to go on

    def to_json(self) -> dict[str, object]:
        """Give the members that differ from a fresh state, under short keys, and the version."""
        said = {key: getattr(self, name) for key, name in _KEYS.items()}
        return {"v": REMEDIATION_VERSION} | {
            key: value for key, value in said.items() if value != getattr(_FRESH, _KEYS[key])
        }

    @classmethod
    def from_json(cls, stored: object) -> CareState:
        """Read a stored state. What is missing or makes no sense is as in a fresh state; never
        raises, since a bad row must not stop a conversation."""
        if not isinstance(stored, Mapping):
            return _FRESH
        return cls(
            round_number=whole_of(stored.get("r"), least=1) or 1,
            generation=whole_of(stored.get("g")) or 0,
            level=_HELD.get(stored.get("l")) if isinstance(stored.get("l"), str) else None,
            grace=whole_of(stored.get("gr"), most=GRACE) or 0,
            since_hard=whole_of(stored.get("sh")),
            countdown=whole_of(stored.get("cd"), most=COUNTDOWN),
            under_caution=whole_of(stored.get("uc"), most=_LEAVE_AFTER) or 0,
            under_critical=whole_of(stored.get("ux"), most=_LEAVE_AFTER) or 0,
            seen=whole_of(stored.get("s")) or 0,
            is_followed=stored.get("f") is True,
            braked_at=whole_of(stored.get("b")),
            is_brake_untold=stored.get("bu") is True,
            is_released=stored.get("go") is True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do before one generation, and why (a sentence for a page, under 200 characters).

    `strength` is None where there is no text to give (none, clear). `remaining` is how many
    generations follow this one before the clear: 4 to 0 in critical, 0 with a clear, else None.
    `grace_left` is set for soft guidances: 3 to 1, this one included. `is_brake`: a clear is due,
    and care does not clear any more.
    """

    action: CareAction = CareAction.NONE
    strength: Strength | None = None
    remaining: int | None = None
    persist: bool = False
    reason: str
    grace_left: int | None = None
    is_brake: bool = False


def advance(
    state: CareState,
    *,
    generation: int,
    snapshot: Snapshot | None,
    cadence: int,
    has_user_prompt: bool,
) -> tuple[CareState, Decision]:
    """Decide what happens before `generation` starts; the newest reading is of one before it.

    `cadence` is in generations. A generation that was decided already changes nothing (callers
    replay the stored decision). An unknown reading (None), or one of another round, freezes
    everything. After a clear the caller stores `new_round`; the state returned here is still the
    old round's.
    """
    if generation <= state.generation:
        return state, Decision(reason=f"Generation {generation} was decided already.")
    state = replace(state, generation=generation)
    frozen = _why_frozen(state, snapshot)
    if snapshot is None or frozen:
        return state, Decision(reason=frozen, is_brake=state.braked_at is not None)
    if snapshot.is_overflow:
        return _overflow(state, snapshot)
    state = _hold(state, snapshot)
    held = _held_back(state, snapshot)
    match state.level:
        case Level.CRITICAL:
            return _critical(state, has_user_prompt=has_user_prompt, held=held)
        case Level.CAUTION:
            return _caution(state, cadence=max(cadence, 1), held=held)
        case None | Level.HEALTHY | Level.UNKNOWN:
            return state, Decision(reason="Healthy: nothing to do.")
        case _:
            assert_never(state.level)


def is_close(prompt: int | None, expected: int | None, optimal: int, limit: int | None) -> bool:
    """Whether the request about to be sent is above the caution line, or the one after it will not
    fit if it grows as much again (tokens; `prompt`: the newest call's, None: unknown).

    Only the first guidance hangs on it: in a small window one result of a tool may lead from
    healthy past the limit, and a clear would come untold.
    """
    if prompt is None or expected is None:
        return False
    return expected > optimal or (limit is not None and 2 * expected - prompt > limit)


def untold(before: CareState, after: CareState, decision: Decision) -> tuple[CareState, Decision]:
    """Take back a guidance whose text has no room in its request: it does not count as told.

    A soft or hard one comes with the next generation instead. The countdown goes on: it counts
    generations.
    """
    reason = f"{decision.reason} Left out: no room for it in the request."
    none = Decision(reason=reason, remaining=decision.remaining, is_brake=decision.is_brake)
    if decision.is_brake:
        return replace(after, is_brake_untold=True), none
    if decision.strength is Strength.CRITICAL:
        return after, none
    grace = GRACE if before.level is not Level.CAUTION else before.grace
    since = before.since_hard if before.level is Level.CAUTION else None
    return replace(after, grace=grace, since_hard=since, is_followed=before.is_followed), none


def brake(state: CareState, *, has_user_prompt: bool) -> tuple[CareState, Decision]:
    """Stop clearing, for the last two rounds brought nothing new: what takes a clear's place.

    The agent is told once; after that nothing is done until an answer, a reminder, another text of
    the user's, or a person who says so makes the clear due again.
    """
    if state.braked_at is not None and not state.is_brake_untold:
        return state, Decision(reason=_BRAKED, is_brake=True)
    since = state.generation if state.braked_at is None else state.braked_at
    return replace(state, braked_at=since, is_brake_untold=False), Decision(
        action=CareAction.GUIDE if has_user_prompt else CareAction.RECORD_PROMPT,
        strength=Strength.CRITICAL,
        persist=not has_user_prompt,
        reason=f"{_STANDSTILL} {_BRAKED}",
        is_brake=True,
    )


def release(state: CareState) -> CareState:
    """Let care go on: a person says so. The next clear that is due comes."""
    if state.braked_at is None:
        return state
    return replace(state, braked_at=None, is_brake_untold=False, is_released=True)


def note_reminder(state: CareState) -> CareState:
    """Count a reminder that was added, changed or deleted as the answer to a hard guidance.

    The next hard one then comes a full cadence after the reminder. One written during grace does
    not replace the first hard one, and none stops a countdown.
    """
    if state.level is Level.CRITICAL and state.countdown is not None:
        return replace(state, is_followed=state.is_followed or state.countdown < COUNTDOWN)
    if state.level is not Level.CAUTION or state.since_hard is None:
        return state
    return replace(state, since_hard=0, is_followed=True)


def new_round(round_number: int, *, generation: int = 0) -> CareState:
    """Give the state a round starts with; pass the last generation decided, so that a repeat of it
    is still known as one."""
    return CareState(round_number=round_number, generation=generation)


def next_hard_in(state: CareState, *, cadence: int) -> int | None:
    """Tell in how many counted generations the next hard guidance is due; None outside caution."""
    if state.level is not Level.CAUTION:
        return None
    if state.since_hard is None:
        return state.grace + 1
    return max(max(cadence, 1) - state.since_hard, 1)


_KEYS = {
    "r": "round_number",
    "g": "generation",
    "l": "level",
    "gr": "grace",
    "sh": "since_hard",
    "cd": "countdown",
    "uc": "under_caution",
    "ux": "under_critical",
    "s": "seen",
    "f": "is_followed",
    "b": "braked_at",
    "bu": "is_brake_untold",
    "go": "is_released",
}
_FRESH = CareState()
_STANDSTILL = "Two rounds in a row brought no answer, no new step and no changed reminder."
_BRAKED = "Care has stopped clearing until one comes, or a person says so."
_HELD: Mapping[object, Level] = {level.value: level for level in HELD}


def _why_frozen(state: CareState, snapshot: Snapshot | None) -> str:
    """Say why this generation changes nothing; "" when the reading counts."""
    if snapshot is None:
        return "No reading in this round yet: nothing changes."
    if snapshot.round_number != state.round_number:
        return f"The reading is of round {snapshot.round_number}: nothing changes."
    if snapshot.level is Level.UNKNOWN and not snapshot.is_overflow:
        return "The level is unknown: nothing changes until it is known."
    return ""


def _overflow(state: CareState, snapshot: Snapshot) -> tuple[CareState, Decision]:
    if snapshot.is_first:
        reason = "No call of this fresh round fitted: clearing again would free nothing."
        return state, Decision(reason=reason)
    reason = "The last call was refused as too long."
    state = replace(state, level=Level.CRITICAL, countdown=0, grace=0, since_hard=None)
    return state, Decision(action=CareAction.CLEAR, remaining=0, reason=reason)


def _hold(state: CareState, snapshot: Snapshot) -> CareState:
    """Take in a reading: up at once, down only with the hysteresis of each line."""
    state = _count_under(state, snapshot)
    level = _held_level(state, snapshot)
    if level is state.level:
        return state
    return replace(
        state,
        level=level,
        grace=GRACE if level is Level.CAUTION else 0,
        since_hard=None,
        countdown=COUNTDOWN if level is Level.CRITICAL else None,
        under_critical=0,
        # Kept on the way from critical to caution: that line was held all the while.
        under_caution=state.under_caution if level is Level.CAUTION else 0,
        is_followed=False,
        braked_at=None,
        is_brake_untold=False,
        is_released=False,
    )


def _count_under(state: CareState, snapshot: Snapshot) -> CareState:
    # A reading may come again (no call since, or judged by another model's lines): count it once.
    step = 1 if snapshot.generation > state.seen else 0
    seen = max(state.seen, snapshot.generation)
    if state.level is None:
        return replace(state, seen=seen)
    is_healthy, is_critical = snapshot.level is Level.HEALTHY, snapshot.level is Level.CRITICAL
    was_critical = state.level is Level.CRITICAL
    return replace(
        state,
        seen=seen,
        under_caution=state.under_caution + step if is_healthy else 0,
        under_critical=state.under_critical + step if was_critical and not is_critical else 0,
    )


def _held_level(state: CareState, snapshot: Snapshot) -> Level | None:
    """Find the level that holds after a reading. Whoever holds critical also holds caution."""
    prompt = snapshot.prompt_tokens
    holds_critical = state.level is Level.CRITICAL and not _has_left(
        prompt, line=snapshot.critical_max_tokens, under=state.under_critical
    )
    match snapshot.level:
        case Level.CRITICAL:
            return Level.CRITICAL
        case Level.CAUTION:
            return Level.CRITICAL if holds_critical else Level.CAUTION
        case Level.HEALTHY | Level.UNKNOWN:
            return Level.CRITICAL if holds_critical else _held_below(state, snapshot)
        case _:
            assert_never(snapshot.level)


def _held_below(state: CareState, snapshot: Snapshot) -> Level | None:
    """The level that holds while the reading itself is under the caution line."""
    prompt = snapshot.prompt_tokens
    if state.level is None and is_close(
        prompt, snapshot.expected_tokens, snapshot.optimal_max_tokens, snapshot.limit_tokens
    ):
        return Level.CAUTION
    if state.level is not None and not _has_left(
        prompt, line=snapshot.optimal_max_tokens, under=state.under_caution
    ):
        return Level.CAUTION
    return None


def _has_left(prompt: int | None, *, line: int | None, under: int) -> bool:
    if under >= _LEAVE_AFTER:
        return True
    return prompt is not None and line is not None and prompt * 100 < line * _LEAVE_PERCENT


def _critical(state: CareState, *, has_user_prompt: bool, held: str) -> tuple[CareState, Decision]:
    left = COUNTDOWN if state.countdown is None else state.countdown
    if left <= 0:
        reason = f"{held}The countdown has run out."
        return state, Decision(action=CareAction.CLEAR, remaining=0, reason=reason)
    left -= 1
    decision = Decision(
        # A user's own text goes out as it is; ours then stays out of the history.
        action=CareAction.GUIDE if has_user_prompt else CareAction.RECORD_PROMPT,
        strength=Strength.CRITICAL,
        remaining=left,
        persist=not has_user_prompt,
        reason=f"{held}{_countdown_reason(left)}",
    )
    return replace(state, countdown=left, is_followed=False), decision


def _caution(state: CareState, *, cadence: int, held: str) -> tuple[CareState, Decision]:
    if state.grace > 0:
        return replace(state, grace=state.grace - 1), Decision(
            action=CareAction.GUIDE,
            strength=Strength.SOFT,
            reason=f"{held}{_soft_reason(state.grace)}",
            grace_left=state.grace,
        )
    since = None if state.since_hard is None else state.since_hard + 1
    if since is not None and since < cadence:
        waits = f"Next hard guidance in {_generations(cadence - since)}."
        followed = "Followed. " if state.is_followed else ""
        return replace(state, since_hard=since), Decision(reason=f"{held}{followed}{waits}")
    return replace(state, since_hard=0, is_followed=False), Decision(
        action=CareAction.GUIDE,
        strength=Strength.HARD,
        reason=f"{held}{_hard_reason(state, since=since)}",
    )


def _held_back(state: CareState, snapshot: Snapshot) -> str:
    """Say that the level held is above the strict one, and by how little; "" when it is not."""
    if state.level is None or snapshot.level is state.level:
        return ""
    is_critical = state.level is Level.CRITICAL
    line = snapshot.critical_max_tokens if is_critical else snapshot.optimal_max_tokens
    under = state.under_critical if is_critical else state.under_caution
    parts = []
    if snapshot.prompt_tokens is not None and line:
        parts.append(f"{snapshot.prompt_tokens * 100 // line} % of the line")
    if under:
        parts.append("under it once")
    return f"Held at {state.level.value}: {', '.join(parts) or 'the line was not left'}. "


def _soft_reason(left: int) -> str:
    ordinal = ("Third", "Second", "First")[min(left, GRACE) - 1]
    return f"{ordinal} of three soft guidances."


def _hard_reason(state: CareState, *, since: int | None) -> str:
    if since is None:
        return "Hard guidance: the three soft ones are used up."
    if state.is_followed:
        return f"Hard guidance again: {_generations(since)} since the last reminder."
    return f"Hard guidance again: no reminder was written in {_generations(since)}."


def _countdown_reason(left: int) -> str:
    if left == 0:
        return "Countdown at 0: the next generation starts with a clear."
    return f"Countdown: {_generations(left)} left before the clear."


def _generations(count: int) -> str:
    return "1 generation" if count == 1 else f"{count} generations"
