"""A stored call as its one door told it, to be recorded anew in another conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

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


def as_told(row: Call, at: Place, lent: LentPlace) -> Capture:
    """The call as its only door told it, as far as that is stored, with its conversation."""
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
