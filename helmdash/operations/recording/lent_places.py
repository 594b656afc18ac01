"""Calls that were told without their session, which a span around them names later.

Programs often name a session on the outermost span alone, which ends, and is exported, last. A call
that was stored without one is then recorded anew in its conversation, judged by the rules of that,
in one transaction with the row that it was: its id stays, and its figures move with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from helmdash.core.calls.capture import Capture, SentSizes, Status
from helmdash.core.calls.routes import CallRoute
from helmdash.operations.recording.calls import record_calls
from helmdash.operations.recording.conversation_rows import lock_by_name
from helmdash.operations.recording.withdrawing import take_back
from helmdash.queries.access import ProjectInfo
from helmdash.records.call_names import Place, calls_at, find_places, payloads_at
from helmdash.records.models import Call, CallName
from helmdash.records.querysets import starts_with

# Of one transaction: each call takes some ten statements, and on SQLite nobody else writes then.
_MOST_AT_ONCE = 50
# Another door told of one of them meanwhile, or it was erased: they are read anew so often.
_TRIES = 3


class _Changed(Exception):
    """The calls are no longer as they were read."""


@dataclass(frozen=True, slots=True)
class LentPlace:
    """The conversation of a call, and its parent, as a span around the call names them.

    also_known: further names of the call, which had no conversation to be kept with.
    """

    call_id: str
    conversation: str
    parent: str | None
    also_known: tuple[str, ...] = ()


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
    told = [
        _as_told(row, found[row.name], places[row.name])
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
        for row in locked:
            take_back(row, None, now)

    record_calls(project=project, captures=told, caller="", now=now, before=leave)
    return len(told)


def _as_told(row: Call, at: Place, lent: LentPlace) -> Capture:
    """The call as its span told it, as far as that is stored, with its conversation."""
    usage = payloads_at(row.project_id, [at]).values_list("usage_raw", flat=True).first()
    trace = row.name.rpartition(":")[0] + ":"
    leading = CallName.objects.filter(
        starts_with("name", trace), project_id=row.project_id, call_id=row.pk
    )
    return Capture(
        id=row.name,
        also_known=lent.also_known,
        inside=tuple(
            sorted(name for name in leading.values_list("name", flat=True) if name != row.name)
        ),
        model=row.model,
        upstream_model=row.upstream_model or None,
        provider=row.provider or None,
        conversation=lent.conversation,
        parent=lent.parent,
        purpose=row.purpose,
        routes=(CallRoute.OTLP_SPAN,),
        attempt=row.attempt,
        caller=row.caller,
        usage=usage,
        finish_reason=row.finish_reason_raw or None,
        status=cast(Status, row.status),
        http_status=row.http_status,
        error_code=row.error_code or None,
        error_message=row.error_message or None,
        latency_ms=row.latency_ms,
        ttft_ms=row.ttft_ms,
        started_at=row.started_at,
        sent=_sent(row),
        sent_is_prompt=False,
        client_name=row.client_name,
        client_version=row.client_version,
        client_window=row.client_window,
    )


def _sent(row: Call) -> SentSizes | None:
    if row.sent_bytes is None:
        return None
    return SentSizes(bytes=row.sent_bytes, messages=row.sent_messages)
