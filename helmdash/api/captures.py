"""Reported calls as core.Capture: the hot path of recording, one call at a time."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest
from pydantic import ValidationError

from helmdash.api.parsing import faults_of, read_json, unstorable, validate
from helmdash.api.problems import FieldFault
from helmdash.api.schemas.calls import BATCH, CALL, CallIn, Rejected, SentIn, TrimIn
from helmdash.core.capture import Capture, CapturedTrim, Sent


def read_batch(
    request: HttpRequest,
) -> tuple[list[tuple[int, Capture]], list[Rejected]]:
    """The good calls of a batch with their places, and the bad ones with their faults.

    Raises Problem when the batch itself is not one.
    """
    value, is_suspect = read_json(request)
    batch = validate(value, BATCH)
    good: list[tuple[int, Capture]] = []
    rejected: list[Rejected] = []
    check = CALL.adapter.validate_python
    for index, item in enumerate(batch["calls"]):
        faults = unstorable(item) if is_suspect else ()
        try:
            call = check(item)
        except ValidationError as error:
            faults += faults_of(error, known=CALL.known)
        else:
            if not faults:
                good.append((index, to_capture(call)))
        if faults:
            rejected.append(_rejected(index, faults))
    return good, rejected


def to_capture(call: CallIn) -> Capture:
    """The report as a value. Blank words say as little as missing ones."""
    messages, attempts = call.get("messages"), call.get("attempts")
    trim, sent = call.get("trim"), call.get("sent")
    return Capture(
        model=call["model"],
        id=call.get("id"),
        conversation=call.get("conversation"),
        provider=call.get("provider") or None,
        pack=call.get("pack") or None,
        purpose=call.get("purpose") or "chat",
        correlation_id=call.get("correlation_id") or None,
        attempt=call.get("attempt") or 1,
        caller=call.get("caller") or None,
        upstream_model=call.get("upstream_model") or None,
        prompt_variant=call.get("prompt_variant") or None,
        response_format=call.get("response_format") or None,
        usage=call.get("usage"),
        finish_reason=call.get("finish_reason") or None,
        raw_content_len=call.get("raw_content_len"),
        latency_ms=_rounded(call.get("latency_ms")),
        ttft_ms=_rounded(call.get("ttft_ms")),
        overhead_ms=_rounded(call.get("overhead_ms")),
        status=call.get("status"),
        http_status=call.get("http_status"),
        error_code=call.get("error_code") or None,
        error_message=call.get("error_message"),
        trim=_trim(trim) if trim else None,
        sent=_sent(sent) if sent else None,
        messages=None if messages is None else tuple(messages),
        content=call.get("content"),
        decoded=call.get("decoded"),
        started_at=call.get("started_at"),
        metadata=call.get("metadata"),
        fit_id=call.get("fit_id") or None,
        attempts=tuple(attempts) if attempts else (),
    )


def _trim(trim: TrimIn) -> CapturedTrim:
    return CapturedTrim(
        before_bytes=trim["before_bytes"],
        after_bytes=trim["after_bytes"],
        dropped=tuple(trim.get("dropped") or ()),
    )


def _sent(sent: SentIn) -> Sent:
    return Sent(
        bytes=sent.get("bytes"),
        messages=sent.get("messages"),
        tools_bytes=sent.get("tools_bytes"),
        images=sent.get("images"),
    )


def _rounded(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds)


def _rejected(index: int, faults: Sequence[FieldFault]) -> Rejected:
    return {
        "index": index,
        "errors": [{"field": fault.field, "message": fault.message} for fault in faults],
    }
