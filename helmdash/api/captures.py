"""A batch of reported calls: the good ones to store, the bad ones to explain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.http import HttpRequest
from pydantic import ValidationError

from helmdash.api.parsing import faults_of, read_json, unstorable, validate
from helmdash.api.problems import FieldFault
from helmdash.api.schemas.calls import Rejected
from helmdash.api.schemas.reports import BATCH, CALL
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.routes import CallRoute
from helmdash.doors.bodies.captures import to_capture


def read_batch(
    request: HttpRequest, *, caller: str, at: datetime
) -> tuple[list[tuple[int, Capture]], list[Rejected]]:
    """The good calls of a batch with their places, and the bad ones with their faults.

    caller, at: who made calls that do not say so, and when they began.
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
                good.append((index, to_capture(call, route=CallRoute.API, caller=caller, at=at)))
        if faults:
            rejected.append(_rejected(index, faults))
    return good, rejected


def _rejected(index: int, faults: Sequence[FieldFault]) -> Rejected:
    return Rejected(index=index, errors=tuple(faults))
