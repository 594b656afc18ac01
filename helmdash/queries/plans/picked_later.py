"""What a Trim dropped and somebody picked later after all: where a fit cut what was needed.

By name, and only within the same work: a later call of the same conversation or correlation id made
by a pack that went, or a later plan for the same intent with a step of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from django.db.models import Q

from helmdash.queries.plans.following import PLANNING_PURPOSES
from helmdash.records.models import Call, Fit, PlanAttempt, PlanStep

# What comes later than a day is other work.
LATER: Final = timedelta(days=1)
# Fits of which it is told, and what they dropped, together: a catalog of thousands drops most of
# them in each fit, and every entry is read to be known by name.
MOST_FITS: Final = 100
MOST_ENTRIES: Final = 20_000
# Calls and steps that are looked through, the newest of their time.
MOST_READ: Final = 5_000
# What is read at a time, for the last is in vain: an entry has some hundred bytes.
_FITS_AT_ONCE: Final = 10
# In one statement; SQLite takes some ten thousand. Of more names every pack's calls are read.
_MOST_NAMES: Final = 1_000
# A catalog is fitted to be sent at once; a plan begins before its fits. A clock may be behind.
_SENT_WITHIN: Final = timedelta(hours=1)
_PLANNED_WITHIN: Final = timedelta(minutes=30)
_SLACK: Final = timedelta(minutes=1)

# What two things have in common: a conversation, a correlation id, an intent.
Work = tuple[Literal["conversation", "correlation", "intent"], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """An entry that was picked: by a call, or by a plan."""

    kind: Literal["call", "plan"]
    id: str
    entry: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PickedLater:
    """An entry. dropped: by so many fits; picked: after so many of them. fit_id and pick: the
    newest such fit, and who picked the entry first after it."""

    entry: str
    dropped: int
    picked: int
    fit_id: str
    pick: Pick


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterPicks:
    """The entries, the most frequent first. fits: so many, the newest, were looked at. is_sample:
    and only the newest MOST_READ calls or steps of their time, or of the day after."""

    entries: tuple[PickedLater, ...] = ()
    fits: int = 0
    is_sample: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    name: str
    at: datetime
    intent_sha: str
    removed: frozenset[str]


def picked_later(*, project_id: int, fit_ids: Sequence[int]) -> LaterPicks:
    """The entries that some of these fits, newest first, dropped and that were picked within LATER.

    At most MOST_FITS of them, and MOST_ENTRIES dropped entries in all. Five queries, one where no
    entry was dropped.
    """
    read = _fits(project_id, fit_ids[:MOST_FITS])
    fits = [each for each in read if each.removed]
    if not fits:
        return LaterPicks(fits=len(read))
    works, near = _works(project_id, fits)
    calls, steps = list(_calls(project_id, fits)), list(_steps(project_id, fits))
    picks = _by_entry([*calls, *steps])
    dropped: dict[str, int] = {}
    found: dict[str, list[tuple[_Fit, Pick]]] = {}
    for fit in fits:
        for entry in fit.removed:
            dropped[entry] = dropped.get(entry, 0) + 1
            # Of thousands that were dropped few are ever picked.
            of_entry = picks.get(entry)
            pick = _first_pick(fit, of_entry, works[fit.name]) if of_entry else None
            if pick is not None:
                found.setdefault(entry, []).append((fit, pick))
    rows = (
        PickedLater(
            entry=entry,
            dropped=dropped[entry],
            picked=len(pairs),
            fit_id=max(pairs, key=_time_of)[0].name,
            pick=max(pairs, key=_time_of)[1],
        )
        for entry, pairs in found.items()
    )
    return LaterPicks(
        entries=tuple(sorted(rows, key=lambda each: (-each.picked, each.entry))),
        fits=len(read),
        is_sample=max(near, len(calls), len(steps)) >= MOST_READ,
    )


def _time_of(pair: tuple[_Fit, Pick]) -> datetime:
    return pair[0].at


def _first_pick(
    fit: _Fit, picks: Sequence[tuple[set[Work], Pick]], works: set[Work]
) -> Pick | None:
    later = (
        pick
        for of, pick in picks
        if fit.at < pick.at <= fit.at + LATER and not works.isdisjoint(of)
    )
    return min(later, key=lambda pick: pick.at, default=None)


def _fits(project_id: int, ids: Sequence[int]) -> list[_Fit]:
    """The newest of them, until MOST_ENTRIES are read; one at least."""
    rows = Fit.objects.filter(project_id=project_id, id__in=ids).order_by("-created_at", "-id")
    told = rows.values_list("name", "created_at", "intent_sha", "trim__removed")
    found: list[_Fit] = []
    entries_read = 0
    for name, at, intent_sha, removed in told.iterator(chunk_size=_FITS_AT_ONCE):
        entries = removed if isinstance(removed, list) else []
        entries_read += len(entries)
        if found and entries_read > MOST_ENTRIES:
            break
        ids_of = (each.get("id") for each in entries if isinstance(each, dict))
        fit = _Fit(
            name=name,
            at=at,
            intent_sha=intent_sha,
            removed=frozenset(id for id in ids_of if isinstance(id, str)),
        )
        found.append(fit)
    return found


def _works(project_id: int, fits: Sequence[_Fit]) -> tuple[Mapping[str, set[Work]], int]:
    """What each fit was a part of, by its name; and how many calls were looked at for it."""
    first, last = _span(fits)
    found: dict[str, set[Work]] = {each.name: {("intent", each.intent_sha)} for each in fits}
    near = Call.objects.filter(
        project_id=project_id, started_at__gte=first - _SLACK, started_at__lte=last + _SENT_WITHIN
    ).order_by("-started_at", "-id")
    told = list(near.values_list("fit_name", "conversation_id", "correlation_id")[:MOST_READ])
    for name, conversation, correlation in told:
        if name in found:
            found[name].update(_work(conversation, correlation))
    attempts = PlanAttempt.objects.filter(
        project_id=project_id,
        plan__project_id=project_id,
        plan__started_at__gte=first - _PLANNED_WITHIN,
        plan__started_at__lte=last + _SLACK,
        fit_name__in=list(found),
    )
    for name, plan in attempts.values_list("fit_name", "plan__name"):
        found[name].add(("correlation", plan))
    return found, len(told)


def _calls(project_id: int, fits: Sequence[_Fit]) -> Iterator[tuple[set[Work], Pick]]:
    first, last = _span(fits)
    removed = _removed(fits)
    by_name = Q(pack__in=removed) if len(removed) <= _MOST_NAMES else ~Q(pack="")
    rows = Call.objects.filter(
        by_name,
        ~Q(purpose__in=PLANNING_PURPOSES),
        project_id=project_id,
        started_at__gt=first,
        started_at__lte=last + LATER,
    ).order_by("-started_at", "-id")
    told: Any = rows.values_list("conversation_id", "correlation_id", "name", "pack", "started_at")
    for conversation, correlation, name, pack, at in told[:MOST_READ]:
        yield set(_work(conversation, correlation)), Pick(kind="call", id=name, entry=pack, at=at)


def _steps(project_id: int, fits: Sequence[_Fit]) -> Iterator[tuple[set[Work], Pick]]:
    first, last = _span(fits)
    rows = PlanStep.objects.filter(
        project_id=project_id,
        plan__project_id=project_id,
        plan__intent_sha__in={each.intent_sha for each in fits},
        plan__started_at__gt=first,
        plan__started_at__lte=last + LATER,
    ).order_by("-plan__started_at", "-plan_id", "position")
    told = rows.values_list("plan__intent_sha", "plan__name", "entry", "plan__started_at")
    for intent, name, entry, at in told[:MOST_READ]:
        yield {("intent", intent)}, Pick(kind="plan", id=name, entry=entry, at=at)


def _by_entry(
    picks: Sequence[tuple[set[Work], Pick]],
) -> Mapping[str, list[tuple[set[Work], Pick]]]:
    found: dict[str, list[tuple[set[Work], Pick]]] = {}
    for each in picks:
        found.setdefault(each[1].entry, []).append(each)
    return found


def _work(conversation: int | None, correlation: str) -> Iterator[Work]:
    if conversation is not None:
        yield "conversation", conversation
    if correlation:
        yield "correlation", correlation


def _removed(fits: Sequence[_Fit]) -> frozenset[str]:
    return frozenset().union(*(each.removed for each in fits))


def _span(fits: Sequence[_Fit]) -> tuple[datetime, datetime]:
    times = [each.at for each in fits]
    return min(times), max(times)
