"""A stored call as its one door told it, to be recorded anew in another conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import cast

from django.db.models import QuerySet

from helmdash.core.calls.capture import Capture, SentSizes, Status
from helmdash.core.calls.routes import CallRoute, split_routes
from helmdash.records.call_names import Place, payloads_at
from helmdash.records.models import Call, CallName
from helmdash.records.querysets import starts_with


@dataclass(frozen=True, slots=True)
class LentPlace:
    """The conversation of a call, and its parent, as a span around the call names them.

    also_known: further names of the call, which had no conversation to be kept with.
    """

    call_id: str
    conversation: str
    parent: str | None
    also_known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Beside:
    """What lies beside some calls, by their keys: the usage as it was told, and the names of spans
    that lead to them."""

    usages: Mapping[int, Mapping[str, object] | None]
    names: Mapping[int, Sequence[str]]


def read_beside(rows: Sequence[Call]) -> Beside:
    """Read it for calls of one project, of a few traces. Two queries."""
    project_id = rows[0].project_id
    payloads = payloads_at(project_id, [Place(row.pk, row.started_at) for row in rows])
    names: dict[int, list[str]] = {}
    for name, pk in names_in_traces(rows).values_list("name", "call_id"):
        names.setdefault(pk, []).append(name)
    return Beside(dict(payloads.values_list("call_id", "usage_raw")), names)


def names_in_traces(rows: Sequence[Call]) -> QuerySet[CallName]:
    """The names of calls that begin as their own ones, up to their last part."""
    traces = {row.name.rpartition(":")[0] + ":" for row in rows}
    begins = reduce(or_, (starts_with("name", trace) for trace in sorted(traces)))
    return CallName.objects.filter(
        begins, project_id=rows[0].project_id, call_id__in=[row.pk for row in rows]
    )


def as_told(row: Call, lent: LentPlace, beside: Beside) -> Capture:
    """The call as its only door told it, as far as that is stored, with its conversation."""
    usage = beside.usages.get(row.pk)
    return Capture(
        id=row.name,
        also_known=lent.also_known,
        inside=tuple(sorted({*beside.names.get(row.pk, ())} - {row.name})),
        model=row.model,
        upstream_model=row.upstream_model or None,
        provider=row.provider or None,
        conversation=lent.conversation,
        parent=lent.parent,
        purpose=row.purpose,
        routes=tuple(CallRoute(each) for each in split_routes(row.routes)),
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
