"""Recorded calls and fits under two tables of budgets, in bounded steps: what a what-if counts, and
what its figures are followed to.

Each step reads a bounded number of rows and says where to go on; nothing is remembered between
steps but that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet

from helmdash.core.whatif.calls import Judge, Pair, RecordedCall, care_figures
from helmdash.core.whatif.fits import NotReplayable, ReplayedFit, replay_fit
from helmdash.queries.lists.paging import older
from helmdash.queries.whatif.kept_fits import catalog_of, recorded_fit
from helmdash.records.models import Call, Conversation, Fit

# One step: some tens of milliseconds of work each.
CALLS_A_STEP: Final = 1_000
FITS_A_STEP: Final = 10
# A fit of a catalog of megabytes takes most of a second, so a step of fits ends by the clock too.
_FIT_SECONDS: Final = 1.0
_CONVERSATIONS_A_STEP: Final = 500
# Columns have the names of the members.
_COLUMNS: Final = RecordedCall._fields
# Of a conversation the newest calls: the longest ones are runs of a loop, which say no more.
_MOST_GENERATIONS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Which rows: of a project, from `since` (None: the first) to before `until`."""

    project_id: int
    since: datetime | None
    until: datetime

    def within(self, rows: QuerySet[Any], field: str) -> QuerySet[Any]:
        """The rows of the range."""
        rows = rows.filter(**{f"{field}__lt": self.until})
        return rows if self.since is None else rows.filter(**{f"{field}__gte": self.since})


Place = Sequence[Any]
"""Where a walk goes on: plain values for JSON; empty: at its beginning."""


def count_calls(span: Span, most: int) -> int:
    """The calls of the range, `most` at most."""
    return _count(_calls(span), most)


def count_fits(span: Span, most: int) -> int:
    """The fits of the range, `most` at most."""
    return _count(_fits(span), most)


def call_step(
    span: Span, judge: Judge, place: Place, most: int = CALLS_A_STEP
) -> tuple[list[Pair], Place | None]:
    """The next calls, newest first, and where to go on; None: there are no more. One query."""
    rows = _calls(span)
    if place:
        rows = older(rows, "started_at", datetime.fromisoformat(place[0]), place[1])
    found = list(rows.order_by("-started_at", "-id").values_list(*_COLUMNS)[:most])
    pairs = [judge.pair(RecordedCall(*values)) for values in found]
    return pairs, place_of_call(pairs[-1].call) if len(found) == most else None


def care_step(
    span: Span, judge: Judge, place: Place, most: int = CALLS_A_STEP
) -> tuple[list[tuple[Pair, list[str]]], Place | None]:
    """What care would have done at the calls of the next conversations, newest first, and where to
    go on; None: there are no more.

    As many conversations as have about `most` calls, one at least. Two queries.
    """
    rows = Conversation.objects.filter(
        project_id=span.project_id, generation__gt=1, started_at__lt=span.until
    )
    if span.since is not None:
        rows = rows.filter(latest_at__gte=span.since)
    if place:
        rows = rows.filter(id__lt=place[0])
    # By their number: that stays, while a conversation that goes on moves in every other order.
    talks = list(rows.order_by("-id").values_list("id", "generation")[:_CONVERSATIONS_A_STEP])
    chosen: list[int] = []
    calls = 0
    for pk, generation in talks:
        if chosen and calls + min(generation, _MOST_GENERATIONS) > most:
            break
        chosen.append(pk)
        calls += min(generation, _MOST_GENERATIONS)
    found = []
    for talk in _by_conversation(span, chosen):
        found += list(care_figures(judge, talk))
    is_over = len(chosen) == len(talks) < _CONVERSATIONS_A_STEP
    return found, None if is_over or not chosen else (chosen[-1],)


def fit_step(
    span: Span, judge: Judge, place: Place, most: int = FITS_A_STEP
) -> tuple[list[tuple[Fit, ReplayedFit | NotReplayable]], Place | None]:
    """The next fits, newest first, each made again, and where to go on; None: there are no more.

    Fewer than `most`, one at least, where they take longer than a second. One query, and two
    for each catalog that is not in memory.
    """
    rows = _fits(span)
    if place:
        rows = older(rows, "created_at", datetime.fromisoformat(place[0]), place[1])
    found = list(rows.order_by("-created_at", "-id")[:most])
    replayed = []
    ends = time.monotonic() + _FIT_SECONDS
    for row in found:
        replayed.append((row, _replayed(row, judge)))
        if time.monotonic() >= ends:
            break
    is_over = len(replayed) == len(found) < most
    return replayed, None if is_over else place_of_fit(replayed[-1][0])


def place_of_call(call: RecordedCall) -> Place:
    """Where a walk goes on after a call."""
    return call.started_at.isoformat(), call.pk


def place_of_fit(row: Fit) -> Place:
    """Where a walk goes on after a fit."""
    return row.created_at.isoformat(), row.pk


def _replayed(row: Fit, judge: Judge) -> ReplayedFit | NotReplayable:
    kept = recorded_fit(row)
    if isinstance(kept, NotReplayable):
        return kept
    prepared = catalog_of(row)
    if prepared is None:
        return NotReplayable.NO_CATALOG
    return replay_fit(
        prepared, kept, before=judge.was.lookup(row.model), after=judge.now.lookup(row.model)
    )


def _by_conversation(span: Span, chosen: Sequence[int]) -> Iterator[list[RecordedCall]]:
    """The main calls of some conversations, in their order."""
    if not chosen:
        return
    rows = _calls(span).filter(conversation_id__in=chosen, generation__isnull=False)
    ordered = rows.order_by("-conversation_id", "generation").values_list(*_COLUMNS)
    if len(chosen) == 1:
        # The newest of a long one.
        newest = list(ordered.order_by("-generation")[:_MOST_GENERATIONS])
        found = [RecordedCall(*values) for values in reversed(newest)]
    else:
        found = [RecordedCall(*values) for values in ordered]
    talk: list[RecordedCall] = []
    for call in found:
        if talk and talk[-1].conversation_id != call.conversation_id:
            yield talk
            talk = []
        talk.append(call)
    if talk:
        yield talk


def _calls(span: Span) -> QuerySet[Call]:
    return span.within(Call.objects.filter(project_id=span.project_id), "started_at")


def _fits(span: Span) -> QuerySet[Fit]:
    return span.within(Fit.objects.filter(project_id=span.project_id), "created_at")


def _count(rows: QuerySet[Any], most: int) -> int:
    return rows.order_by()[:most].count()
