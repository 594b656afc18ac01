"""Calls beside others of their conversations, many at once: by the table of names, so that each is
looked for in its own month only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db.models import QuerySet

from helmdash.core.agents.side_requests import COMPACTION
from helmdash.core.calls.lanes import Lane
from helmdash.records.call_names import calls_at, find_places, find_within
from helmdash.records.models import Call

# Spans of generations in one statement: each has some ten calls, whose ids the next one lists.
_AT_ONCE: Final = 100
# Calls that wrote a summary, the newest of their time: each compaction has one or two.
_MOST_SUMMARIES: Final = 2_000


class NearCall(NamedTuple):
    """The columns of a call, in the order they are asked for."""

    name: str
    model: str
    model_key: str | None
    conversation_id: int | None
    generation: int | None
    round_number: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    status: str
    cause: str
    level_reason: str
    client_window: int | None
    limit_tokens: int | None
    fit_name: str
    trim_before_bytes: int | None
    trim_after_bytes: int | None
    sent_bytes: int | None
    started_at: datetime


class Span(NamedTuple):
    """Generations of a conversation, both ends included."""

    conversation_id: int
    first: int
    latest: int


def rows_of(calls: QuerySet[Call]) -> list[NearCall]:
    """The calls with their columns. One query."""
    return [NearCall(*row) for row in calls.values_list(*NearCall._fields)]


def calls_named(project_id: int, names: Sequence[str]) -> list[NearCall]:
    """The calls of these names, as far as there are any, oldest first. Two queries."""
    places = find_places(project_id, names).values()
    return sorted(rows_of(calls_at(project_id, places)), key=lambda call: call.started_at)


def calls_within(project_id: int, spans: Iterable[Span]) -> Mapping[int, Mapping[int, NearCall]]:
    """The main calls of these generations, by conversation and generation. Two queries for each
    hundred spans."""
    wanted = list(dict.fromkeys(spans))
    found: dict[int, dict[int, NearCall]] = defaultdict(dict)
    for start in range(0, len(wanted), _AT_ONCE):
        places = find_within(project_id, wanted[start:][:_AT_ONCE])
        for call in rows_of(calls_at(project_id, places)):
            if call.conversation_id is not None and call.generation is not None:
                found[call.conversation_id][call.generation] = call
    return found


def summaries(
    project_id: int, conversation_ids: Sequence[int], first: datetime, latest: datetime
) -> Mapping[int, Sequence[NearCall]]:
    """The calls beside these conversations that were answered with a summary of them, from one
    moment to another, oldest first. One query."""
    calls = Call.objects.filter(
        project_id=project_id,
        purpose=COMPACTION,
        lane=Lane.SIDE.value,
        status="success",
        cause="",
        conversation_id__in=sorted(set(conversation_ids)),
        started_at__gte=first,
        # It may have been noted with the clock of its end.
        started_at__lte=latest + timedelta(seconds=1),
    )
    found: dict[int, list[NearCall]] = defaultdict(list)
    for call in reversed(rows_of(calls.order_by("-started_at", "-id")[:_MOST_SUMMARIES])):
        if call.conversation_id is not None:
            found[call.conversation_id].append(call)
    return found
