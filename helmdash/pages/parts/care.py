"""Care of a conversation as its page tells it: the countdown, and what was said to the agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from helmdash.core.budgets.levels import HELD, Level
from helmdash.core.care.remediation import CareAction, Strength
from helmdash.queries.conversations.care import CareView, GuidanceView

# The reason of a clear that a person made on the conversation's page.
BY_HAND = "by_hand"
# What a row asks for, by its strength; a clear asks nothing.
_ASKED = {
    Strength.SOFT: "finish the step at hand, and collect what a fresh start would need",
    Strength.HARD: "write or update a reminder",
    Strength.CRITICAL: "bring the reminders up to date, then clear",
}
_WHY_CLEARED = {"clear_mind": "the agent asked for it", BY_HAND: "somebody did it on this page"}
_BRAKED = (
    "At generation {:,} two rounds in a row had brought no answer, no new step and no changed "
    "reminder. It goes on when one of them comes, or when you say so."
)
_CLEARS_NEXT = "HelmDash clears before the next generation"
_WANT_REMINDER = frozenset({Strength.HARD, Strength.CRITICAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Countdown:
    """What comes next if nothing changes; `level` is the colour that it is shown in."""

    level: Level
    text: str
    note: str = ""
    is_braked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidanceRow:
    """One guidance, recorded prompt or clear. sign: soft, hard, critical or clear.

    is_waiting: its generation is not recorded yet, so that nobody can tell what came of it.
    """

    generation: int
    round_number: int
    sign: str
    asked: str
    is_recorded: bool
    wants_reminder: bool
    followed_at: datetime | None
    text: str
    at: datetime
    is_waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The newest rows; is_more: there are older ones."""

    items: tuple[GuidanceRow, ...]
    is_more: bool


def countdown(care: CareView, guidance: Sequence[GuidanceView] = ()) -> Countdown | None:
    """The number that matters now, in plain sight; None while there is nothing to count.

    guidance: what was told in the conversation, newest first; it says what is waited for.
    """
    heed = _heed(care, guidance)
    if care.braked_at is not None:
        return Countdown(
            level=Level.CRITICAL,
            text="HelmDash has stopped clearing",
            note=_BRAKED.format(care.braked_at),
            is_braked=True,
        )
    if care.level is None:
        return None
    if care.countdown is not None:
        text = clears_in(care.countdown, after=care.generation if care.is_waiting else None)
        return Countdown(level=care.level, text=text, note=heed)
    if care.grace_left:
        times = _count(care.grace_left, "more soft guidance", "more soft guidances")
        return Countdown(level=care.level, text=f"{times}, then a hard one")
    if care.next_hard_in is not None:
        return Countdown(level=care.level, text=_next_hard(care.next_hard_in), note=heed)
    return None


def _next_hard(generations: int) -> str:
    when = "with the next generation" if generations <= 1 else f"in {generations:,} generations"
    return f"Next hard guidance {when}"


def clears_in(left: int, *, after: int | None = None) -> str:
    """How long until the clear, in generations. after: the one that is under way; None: none is."""
    if left <= 0:
        return f"HelmDash clears after generation {after:,}" if after else _CLEARS_NEXT
    return f"{_count(left, 'generation', 'generations')} until HelmDash clears"


def told(rows: Sequence[GuidanceView], care: CareView, *, most: int) -> Told:
    """The rows of the table, newest first; `rows` may hold one more than are shown."""
    return Told(items=tuple(_row(each, care) for each in rows[:most]), is_more=len(rows) > most)


def untold(care: CareView, level: Level) -> str:
    """Why nothing was told so far. level: of the newest call."""
    if care.generation:
        return f"Asked up to generation {care.generation:,}; nothing had to be said."
    if level in HELD:
        return (
            "Care has not run: neither the gateway nor an agent asked what to do before a "
            "generation."
        )
    return "No program has asked for guidance, and the newest call is above no line."


def _row(view: GuidanceView, care: CareView) -> GuidanceRow:
    strength = Strength(view.strength) if view.strength else None
    is_clear = view.action == CareAction.CLEAR
    return GuidanceRow(
        generation=view.generation,
        round_number=view.round_number,
        sign="clear" if is_clear or strength is None else strength.value,
        asked=_asked(view, strength),
        is_recorded=view.action == CareAction.RECORD_PROMPT,
        wants_reminder=strength in _WANT_REMINDER,
        followed_at=view.followed_at,
        text=view.text,
        at=view.at,
        is_waiting=_is_waiting(view, care),
    )


def _asked(view: GuidanceView, strength: Strength | None) -> str:
    if view.action == CareAction.CLEAR:
        return f"opened round {view.round_number + 1}: {_WHY_CLEARED.get(view.reason, view.reason)}"
    if strength is None:
        return view.reason
    left = view.remaining
    after = f"; {_count(left, 'generation', 'generations')} left after it" if left else ""
    last = "; the last one before the clear" if left == 0 else ""
    return f"{_ASKED[strength]}{after}{last}"


def _heed(care: CareView, guidance: Sequence[GuidanceView]) -> str:
    """Whether the agent did what it was asked; only of a guidance whose generation is recorded."""
    if care.followed is None:
        return ""
    if care.followed:
        return "The latest guidance was followed."
    asked = [each for each in guidance if each.strength in _WANT_REMINDER]
    if not asked or not _is_waiting(asked[0], care):
        return "The latest guidance was not followed."
    newest, *before = asked
    said = f"The latest guidance waits for generation {newest.generation:,}."
    if before and before[0].round_number == newest.round_number and not before[0].followed_at:
        said += " The one before it was not followed."
    return said


def _is_waiting(view: GuidanceView, care: CareView) -> bool:
    return care.is_waiting and view.generation >= care.generation and view.followed_at is None


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
