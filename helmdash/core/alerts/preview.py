"""What a rule would have said: its messages over a stretch of the past."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from helmdash.core.alerts.quiet import QuietHours

# A look at the clock of quiet hours is cheap; a day has 1,440 minutes.
_STEP = timedelta(minutes=1)
_MOST_STEPS = 1441


@dataclass(frozen=True, slots=True, kw_only=True)
class PastChange:
    """A change that an alert would have had. is_firing: it began or got worse; else it was over.

    path: the page of what it was made from, "" without one.
    """

    subject: str
    title: str
    at: datetime
    is_firing: bool
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """messages: how many would have been sent, by the moment of each (the newest first, a few).

    alerts: how many subjects fired; changes: how many changes there were.
    """

    messages: int
    alerts: int
    changes: int
    sent: tuple[PastMessage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMessage:
    """One message that would have been sent, how many changes it would have told, and the first of
    them."""

    at: datetime
    changes: int
    told: tuple[PastChange, ...]


_MOST_SHOWN = 20
# As many as a message names.
_MOST_NAMED = 15


def preview(changes: Iterable[PastChange], *, group_s: int, quiet: QuietHours | None) -> Preview:
    """Go through changes, oldest first, as the job would have."""
    ordered = sorted(changes, key=lambda each: each.at)
    sent: list[PastMessage] = []
    group: dict[str, PastChange] = {}
    ends_at: datetime | None = None

    def send() -> None:
        nonlocal ends_at
        if group and ends_at is not None:
            first = tuple(islice(group.values(), _MOST_NAMED))
            sent.append(PastMessage(at=ends_at, changes=len(group), told=first))
        group.clear()
        ends_at = None

    fired: set[str] = set()
    for change in ordered:
        if ends_at is not None and (change.at >= ends_at):
            send()
        if ends_at is None:
            ends_at = _end_of_quiet(change.at + timedelta(seconds=group_s), quiet)
        is_hushed = quiet is not None and quiet.covers(change.at) and not change.is_firing
        before = group.get(change.subject)
        if is_hushed and before is not None and before.is_firing:
            del group[change.subject]  # it began and ended while nobody was to be told
        else:
            group[change.subject] = change
        if change.is_firing:
            fired.add(change.subject)
    send()
    return Preview(
        messages=len(sent),
        alerts=len(fired),
        changes=len(ordered),
        sent=tuple(reversed(sent[-_MOST_SHOWN:])),
    )


def _end_of_quiet(moment: datetime, quiet: QuietHours | None) -> datetime:
    """The moment itself, or the first minute after it that is not quiet."""
    if quiet is None:
        return moment
    at = moment
    for _ in range(_MOST_STEPS):
        if not quiet.covers(at):
            return at
        at += _STEP
    return moment


def lasting(
    times: Iterable[datetime], *, subject: str, title: str, least: int, within: timedelta
) -> list[PastChange]:
    """The changes of an alert that fires while at least `least` of these times lie within a span.

    times: oldest first. One that is 1 fires at each and is over a span later.
    """
    found: list[PastChange] = []
    recent: deque[datetime] = deque()
    is_firing = False

    def turn(at: datetime, *, fires: bool) -> None:
        nonlocal is_firing
        is_firing = fires
        found.append(PastChange(subject=subject, title=title, at=at, is_firing=fires))

    def age(now: datetime | None) -> None:
        while recent and (now is None or now - recent[0] >= within):
            over_at = recent.popleft() + within
            if is_firing and len(recent) < least:
                turn(over_at, fires=False)

    for at in times:
        age(at)
        recent.append(at)
        if not is_firing and len(recent) >= least:
            turn(at, fires=True)
    age(None)
    return found


def until_told_else(
    told: Iterable[tuple[datetime, str | None]], *, subject: str, lasts: timedelta
) -> list[PastChange]:
    """The changes of an alert that fires from a moment that says so (with a title; None: it does
    not fire) to one that does not, or until nothing was told for so long.

    told: oldest first. Of moments within one minute the last counts, as for a look a minute.
    """
    found: list[PastChange] = []
    firing: str | None = None
    before: datetime | None = None
    moments = {_next_minute(at): (at, title) for at, title in told}
    for at, title in moments.values():
        if firing is not None and before is not None and at - before >= lasts:
            found.append(_over(subject, firing, before + lasts))
            firing = None
        if firing is None and title is not None:
            firing = title
            found.append(PastChange(subject=subject, title=title, at=at, is_firing=True))
        elif firing is not None and title is None:
            found.append(_over(subject, firing, at))
            firing = None
        before = at
    if firing is not None and before is not None:
        found.append(_over(subject, firing, before + lasts))
    return found


def turning(
    told: Iterable[tuple[datetime, str | None]], *, subject: str, path: str = ""
) -> list[PastChange]:
    """The changes of an alert that fires from a moment that says so (with a title) to the next one
    that does not (None). told: oldest first."""
    found: list[PastChange] = []
    firing: str | None = None
    for at, title in told:
        if (title is None) is (firing is None):
            continue
        words = title if title is not None else firing or ""
        found.append(
            PastChange(subject=subject, title=words, at=at, is_firing=title is not None, path=path)
        )
        firing = title
    return found


def _over(subject: str, title: str, at: datetime) -> PastChange:
    return PastChange(subject=subject, title=title, at=at, is_firing=False)


def gaps(
    times: Iterable[datetime], *, subject: str, title: str, longest: timedelta, now: datetime
) -> list[PastChange]:
    """The changes of an alert that fires when for so long no time came. times: oldest first."""
    found: list[PastChange] = []
    before: datetime | None = None
    for at in [*times, now]:
        if before is not None and at - before >= longest:
            begun = PastChange(subject=subject, title=title, at=before + longest, is_firing=True)
            found.append(begun)
            if at is not now:
                found.append(replace(begun, at=at, is_firing=False))
        before = at
    return found


def out_of_range(
    calls: Sequence[tuple[datetime, int]],
    *,
    subject: str,
    title: str,
    within: timedelta,
    range_of: timedelta,
    since: datetime,
    until: datetime,
    is_out: Callable[[Counter[int], Counter[int]], bool | None],
) -> list[PastChange]:
    """The changes of an alert that fires while the calls of a span are out of the range of those
    before it, looked at each minute in which they change.

    calls: (when, what is counted of it), oldest first. is_out: of what was counted within the span,
    and within `range_of` before it; None, too few to tell, is as if they were not.
    """
    found: list[PastChange] = []
    recent, before = Counter[int](), Counter[int]()
    entering, leaving, gone = 0, 0, 0
    is_firing = False
    moments = {_next_minute(at + late) for at, _ in calls for late in (timedelta(0), within)}
    for now in sorted(each for each in moments if since <= each <= until):
        while entering < len(calls) and calls[entering][0] <= now:
            recent[calls[entering][1]] += 1
            entering += 1
        while leaving < entering and calls[leaving][0] <= now - within:
            recent[calls[leaving][1]] -= 1
            before[calls[leaving][1]] += 1
            leaving += 1
        while gone < leaving and calls[gone][0] <= now - within - range_of:
            before[calls[gone][1]] -= 1
            gone += 1
        fires = bool(is_out(recent, before))
        if fires is not is_firing:
            is_firing = fires
            found.append(PastChange(subject=subject, title=title, at=now, is_firing=fires))
    return found


def _next_minute(at: datetime) -> datetime:
    minute = at.replace(second=0, microsecond=0)
    return minute if minute == at else minute + _STEP
