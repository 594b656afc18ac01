"""Calls that were told without their session, which a span around them names later.

Programs often name a session on the outermost span alone, which ends, and is exported, last. A call
that was stored without one is then recorded anew in its conversation, judged by the rules of that,
in one transaction with the row that it was: its id stays, and its figures move with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from helmdash.core.calls.routes import CallRoute
from helmdash.operations.recording.calls import record_calls
from helmdash.operations.recording.conversation_rows import lock_by_name
from helmdash.operations.recording.told_before import LentPlace, as_told, read_beside
from helmdash.operations.recording.withdrawing import take_back_nameless
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.call_names import calls_at, find_places

# Of one transaction: on SQLite nobody else writes then, for some hundred milliseconds.
_MOST_AT_ONCE = 250
# Another door told of one of them meanwhile, or it was erased: they are read anew so often.
_TRIES = 3


class _Changed(Exception):
    """The calls are no longer as they were read."""


def place_calls(*, project: ProjectInfo, lent: Sequence[LentPlace], now: datetime) -> int:
    """Give calls the conversation that they lacked; how many there were. One that has one, or came
    by another door as well, stays as it is; of several places of a call the first counts."""
    return sum(
        _place_some(project, lent[start : start + _MOST_AT_ONCE], now)
        for start in range(0, len(lent), _MOST_AT_ONCE)
    )


def _place_some(project: ProjectInfo, lent: Sequence[LentPlace], now: datetime) -> int:
    for _ in range(_TRIES):
        with suppress(_Changed):
            return _place(project, lent, now)
    return 0


def _place(project: ProjectInfo, lent: Sequence[LentPlace], now: datetime) -> int:
    places = {each.call_id: each for each in reversed(lent)}
    found = find_places(project.id, list(places))
    rows = list(
        calls_at(project.id, found.values()).filter(
            name__in=list(places), conversation=None, routes=CallRoute.OTLP_SPAN.value
        )
    )
    if not rows:
        return 0
    beside = read_beside(rows)
    told = [
        as_told(row, places[row.name], beside)
        for row in sorted(rows, key=lambda row: row.started_at)
    ]

    def leave() -> None:
        # Conversations first, in the order that everybody locks in.
        lock_by_name(project.id, {each.conversation for each in places.values()})
        stored = calls_at(project.id, found.values()).filter(conversation=None)
        mine = stored.filter(pk__in=[row.pk for row in rows], routes=CallRoute.OTLP_SPAN.value)
        locked = list(mine.select_for_update(of=("self",)).order_by("id"))
        if len(locked) < len(rows):
            # What is gone must not come back, nor what another door added be lost.
            raise _Changed
        take_back_nameless(locked, now)

    record_calls(project=project, captures=told, caller="", now=now, before=leave)
    return len(told)
