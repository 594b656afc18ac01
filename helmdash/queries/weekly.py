"""Seven days for a report: what changed, what failed, what was saved, what waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from helmdash.core.evidence.net_value import Shortening
from helmdash.core.evidence.suggested import Counted
from helmdash.core.rollups.figures import CALLS, Marginal, Tokens
from helmdash.core.rollups.fit_facts import AFTER_BYTES, BEFORE_BYTES, TRIMMED
from helmdash.queries import failures, rollups
from helmdash.queries.evidence import suggestions
from helmdash.queries.evidence.net_value import fresh_starts, net_report
from helmdash.queries.evidence.shortened import NetReport
from helmdash.queries.evidence.suggestions import SuggestionView
from helmdash.queries.failures import FailureGroup
from helmdash.queries.marks import Mark, MarkKind, marks

_WEEK: Final = timedelta(days=7)
# A report is read in a minute: the worst of each, and how many more there are.
MOST_GROUPS: Final = 8
MOST_DECIDED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Calls of a week, and what they took. prompt_tokens: as reported, of those that told."""

    calls: Counted
    prompt_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Prompts that Trims made smaller, and by how many bytes."""

    trims: int
    saved_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyReport:
    """Seven days of UTC from `since` to before `until`, and the seven before them.

    now, before: None where calls of before an upgrade are still to be counted. failing: the groups
    with the most calls; more: how many others fail. edits: of budgets, oldest first, the newest
    MOST_MARKS. clears, compactions: how many. net: what shortened prompts came to. decided:
    suggestions that were accepted or dismissed in the week, the newest MOST_DECIDED, and
    more_decided besides. waiting: those that wait, of whatever week, and more_waiting besides.
    """

    since: datetime
    until: datetime
    now: Traffic | None
    before: Traffic | None
    failing: tuple[FailureGroup, ...]
    more: int
    edits: tuple[Mark, ...]
    clears: int
    compactions: int
    net: NetReport
    saved: Saved | None
    decided: tuple[SuggestionView, ...]
    more_decided: int
    waiting: tuple[SuggestionView, ...]
    more_waiting: int

    @property
    def last_day(self) -> date:
        """The seventh day, the newest that is told of."""
        return (self.until - timedelta(days=1)).date()


def weekly_report(*, project_id: int, until: datetime) -> WeeklyReport:
    """The report of the seven days before `until`, a midnight of UTC; it may be yet to come, to
    tell of today as far as it is. Forty queries at most."""
    since = until - _WEEK
    # Of marks and of the week before it is told as of the end, whoever reads it when.
    found = failures.failing(
        project_id=project_id, now=until, since=since, until=until, said_by=until
    )
    happened = marks(project_id=project_id, since=since, until=until)
    starts = fresh_starts(project_id=project_id, since=since, until=until)
    inbox = suggestions.inbox(project_id=project_id)
    decided, more_decided = suggestions.decided_between(
        project_id=project_id, since=since, until=until, most=MOST_DECIDED
    )
    return WeeklyReport(
        since=since,
        until=until,
        now=_traffic(project_id, since, until),
        before=_traffic(project_id, since - _WEEK, since),
        failing=found.open[:MOST_GROUPS],
        more=max(len(found.open) - MOST_GROUPS, 0) + found.more,
        edits=tuple(mark for mark in happened if mark.kind is MarkKind.BUDGET),
        clears=starts.get(Shortening.CLEAR, 0),
        compactions=starts.get(Shortening.COMPACTION, 0),
        net=net_report(project_id=project_id, since=since, until=until, limit=0),
        saved=_saved(project_id, since, until),
        decided=decided,
        more_decided=more_decided,
        waiting=inbox.waiting,
        more_waiting=inbox.more,
    )


def _traffic(project_id: int, since: datetime, until: datetime) -> Traffic | None:
    found = rollups.figures(project_id=project_id, marginal=Marginal.ALL, since=since, until=until)
    if found is None:
        return None
    counts = found.totals().get((), {})
    return Traffic(
        calls=Counted(calls=counts.get(CALLS, 0), clean=counts.get("o:clean", 0)),
        prompt_tokens=counts.get(Tokens.PROMPT, 0),
        cached_tokens=counts.get(Tokens.CACHED, 0),
    )


def _saved(project_id: int, since: datetime, until: datetime) -> Saved | None:
    found = rollups.figures(project_id=project_id, marginal=Marginal.FIT, since=since, until=until)
    if found is None:
        return None
    counts = found.totals().get((), {})
    return Saved(
        trims=counts.get(TRIMMED, 0),
        saved_bytes=counts.get(BEFORE_BYTES, 0) - counts.get(AFTER_BYTES, 0),
    )
