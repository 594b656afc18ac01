"""The state of an alert: one for each rule and subject, firing or resolved, in episodes.

`advance` is told what a subject looks like now, however often and in whatever order looks come: a
look that says what is known changes nothing, so that a job which runs twice sends nothing twice.
Each change has a number (`revision`), and what was told is the number of the change that was told.
A subject that fires again before anybody was told of the end goes on with its episode: who opened
something for it would never hear that this is over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from helmdash.core.alerts.quiet import QuietHours
from helmdash.core.alerts.rules import Severity

_FIRST_YEAR: Final = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a subject looks like. severity None: it is over, or was nothing.

    title, detail: one line each, for people. path: the page to look at, "" without one.
    """

    subject: str
    severity: Severity | None
    title: str = ""
    detail: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertState:
    """Where an alert stands. resolved_at None: firing. told: the revision that was told last.

    episode: which time it is that the subject fires, counted on from where `first_episode` says.
    told_episode: the newest one that was told.
    """

    subject: str
    severity: Severity
    title: str
    detail: str
    path: str
    opened_at: datetime
    changed_at: datetime
    resolved_at: datetime | None = None
    episode: int = 1
    revision: int = 1
    told: int = 0
    told_episode: int = 0
    is_acknowledged: bool = False

    @property
    def is_firing(self) -> bool:
        """Whether it goes on."""
        return self.resolved_at is None

    @property
    def is_pending(self) -> bool:
        """Whether a change is yet to be told."""
        return self.told < self.revision

    @property
    def is_known(self) -> bool:
        """Whether somebody was told of it, this time."""
        return self.told_episode == self.episode

    @property
    def is_end_untold(self) -> bool:
        """Whether it is over for who looks here, and goes on for who was told of its beginning."""
        return not self.is_firing and self.is_pending and self.is_known


def first_episode(now: datetime) -> int:
    """A number that none of a subject's alerts had that are forgotten by now: one that was erased,
    or over for long, may fire again, under another key.

    Of seconds, which are more than any alert has episodes; within what a column holds.
    """
    return int((now - _FIRST_YEAR).total_seconds()) % 2**30 + 1


def advance(state: AlertState | None, seen: Seen, *, now: datetime) -> AlertState | None:
    """What becomes of an alert by a look at its subject; None: nothing changes."""
    if seen.severity is None:
        if state is None or not state.is_firing:
            return None
        return replace(
            state,
            resolved_at=now,
            changed_at=now,
            revision=state.revision + 1,
            detail=seen.detail or state.detail,
        )
    if state is None:
        return AlertState(
            subject=seen.subject,
            severity=seen.severity,
            title=seen.title,
            detail=seen.detail,
            path=seen.path,
            opened_at=now,
            changed_at=now,
            episode=first_episode(now),
        )
    said = replace(state, title=seen.title, detail=seen.detail, path=seen.path)
    if not state.is_firing:
        return replace(
            said,
            severity=seen.severity,
            opened_at=now,
            changed_at=now,
            resolved_at=None,
            episode=state.episode + (not state.is_end_untold),
            revision=state.revision + 1,
            is_acknowledged=False,
        )
    if seen.severity is state.severity:
        return None
    return replace(
        said,
        severity=seen.severity,
        changed_at=now,
        revision=state.revision + 1,
    )


def is_worth_telling(state: AlertState, quiet: QuietHours | None) -> bool:
    """Whether somebody has to hear of a pending change.

    Not of what began and ended in quiet hours without anybody being told, nor of what changes
    while somebody who acknowledged it sees to it; its end is told.
    """
    if state.is_firing:
        return not state.is_acknowledged
    return state.is_known or quiet is None or not quiet.covers(state.changed_at)


def is_group_due(first_pending_at: datetime, *, group_s: int, now: datetime) -> bool:
    """Whether changes were gathered for long enough. first_pending_at: of the oldest of them; they
    do not wait for a clock that was set back since."""
    return not first_pending_at <= now < first_pending_at + timedelta(seconds=group_s)
