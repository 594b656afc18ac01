"""Calls that were told without their session, until a span around them names it.

Programs often name a session on the outermost span alone, which ends, and is exported, last: by
then another process may take it, or the server has been started anew. So what a call waits for is
stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from helmdash.core.telemetry.facts import placed
from helmdash.core.telemetry.nesting import Nameless, SpanKey
from helmdash.core.telemetry.spans import above_of, missing_around, session_of
from helmdash.core.telemetry.values import Span
from helmdash.operations.database.transactions import write
from helmdash.operations.recording.spans.lent_places import place_calls
from helmdash.operations.recording.told_before import LentPlace
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import AwaitedSpan
from helmdash.records.statements.bulk import upsert_rows

# Agents run for hours; a trace that nobody has ended by then has broken off.
AWAITED_WITHIN: Final = timedelta(days=1)
# Of one statement.
_MOST_SPANS = 5_000


def settle_sessions(
    *,
    project: ProjectInfo,
    spans: Mapping[SpanKey, Span],
    nameless: Sequence[Nameless],
    now: datetime,
) -> int:
    """Give calls of earlier exports the sessions that these spans name, and let those of this one
    that have none (`nameless`) wait; how many calls got one. To be called when they are stored.

    Where it fails, what waited waits on: the export comes again.
    """
    placed_calls = 0
    here = [_around(key) for key in spans]
    for start in range(0, len(here), _MOST_SPANS):
        some = here[start : start + _MOST_SPANS]
        waiting = list(AwaitedSpan.objects.filter(project_id=project.id, around__in=some))
        if waiting:
            placed_calls += _settle(project, waiting, spans, now)
    if nameless:
        write(partial(_await, project.id, nameless, now))
    return placed_calls


def _settle(
    project: ProjectInfo,
    waiting: Sequence[AwaitedSpan],
    spans: Mapping[SpanKey, Span],
    now: datetime,
) -> int:
    lent: list[LentPlace] = []
    further: list[Nameless] = []
    for row in waiting:
        trace, _, own = row.around.partition(":")
        span = spans[trace, own]
        above = above_of(span, spans)
        place = placed(session_of([span, *above]), row.agent or None)
        missing = missing_around(span, above)
        names = tuple(row.also_known)
        if place.conversation is not None:
            lent.append(LentPlace(row.call_name, place.conversation, place.parent, names))
        elif missing is not None:
            further.append(
                Nameless(
                    id=row.call_name,
                    awaits=(trace, missing),
                    agent=row.agent or None,
                    also_known=names,
                )
            )
    count = place_calls(project=project, lent=lent, now=now) if lent else 0

    def leave() -> None:
        AwaitedSpan.objects.filter(pk__in=[row.pk for row in waiting]).delete()
        _await(project.id, further, now)

    write(leave)
    return count


def _await(project_id: int, nameless: Sequence[Nameless], now: datetime) -> None:
    rows = {
        (_around(call.awaits), call.id): {
            "project_id": project_id,
            "around": _around(call.awaits),
            "call_name": call.id,
            "agent": call.agent or "",
            "also_known": list(call.also_known),
            "told_at": now,
        }
        for call in nameless
    }
    # In one order, so that two writers of one trace cannot wait for each other.
    told = [rows[key] for key in sorted(rows)]
    upsert_rows(AwaitedSpan, told, unique=("project_id", "around", "call_name"), update="told_at")


def _around(key: SpanKey) -> str:
    return ":".join(key)
