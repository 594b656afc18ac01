"""What a rule would have said: its messages over a stretch of the past."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from helmdash.core.alerts.quiet import QuietHours

# A look at the clock of quiet hours is cheap; a day has 1,440 minutes.
_STEP = timedelta(minutes=1)
_MOST_STEPS = 1441


@dataclass(frozen=True, slots=True, kw_only=True)
class PastChange:
    """A change that an alert would have had. is_firing: it began or got worse; else it was over."""

    subject: str
    title: str
    at: datetime
    is_firing: bool


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
    """One message that would have been sent, and how many changes it would have told."""

    at: datetime
    changes: int
    first: str


_MOST_SHOWN = 20


def preview(changes: Iterable[PastChange], *, group_s: int, quiet: QuietHours | None) -> Preview:
    """Go through changes, oldest first, as the job would have."""
    ordered = sorted(changes, key=lambda each: each.at)
    sent: list[PastMessage] = []
    group: dict[str, PastChange] = {}
    ends_at: datetime | None = None

    def send() -> None:
        nonlocal ends_at
        if group and ends_at is not None:
            first = next(iter(group.values()))
            sent.append(PastMessage(at=ends_at, changes=len(group), first=first.title))
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
