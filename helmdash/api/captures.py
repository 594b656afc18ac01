"""Reported calls as core.Capture: the hot path of recording, one call at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpRequest
from pydantic import ValidationError

from helmdash.api.parsing import faults_of, read_json, unstorable, validate
from helmdash.api.problems import FieldFault
from helmdash.api.schemas.calls import Rejected
from helmdash.api.schemas.reports import BATCH, CALL, CallIn, SentIn, TrimIn
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
    """The report as a value. Null and blank words say as little as missing ones."""
    given: dict[str, Any] = {
        name: value
        for name, value in call.items()
        if value is not None and (value != "" or name in _MEANT_WHEN_EMPTY)
    }
    for name in _MILLISECONDS:
        if name in given:
            given[name] = round(given[name])
    for name, convert in _CONVERSIONS:
        if name in given:
            given[name] = convert(given[name])
    return Capture(**given)


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


def _rejected(index: int, faults: Sequence[FieldFault]) -> Rejected:
    return {
        "index": index,
        "errors": [{"field": fault.field, "message": fault.message} for fault in faults],
    }


# An answer without a letter is an answer.
_MEANT_WHEN_EMPTY = frozenset({"content"})
_MILLISECONDS = ("latency_ms", "ttft_ms", "overhead_ms")
_CONVERSIONS: tuple[tuple[str, Callable[[Any], object]], ...] = (
    ("trim", _trim),
    ("sent", _sent),
    ("messages", tuple),
    ("attempts", tuple),
)
