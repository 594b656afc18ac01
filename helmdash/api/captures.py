"""A batch of reported calls: the good ones to store, the bad ones to explain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from django.http import HttpRequest
from pydantic import ValidationError

from helmdash.api.auth import Access
from helmdash.api.parsing import faults_of, read_json, unstorable, validate
from helmdash.api.problems import FieldFault
from helmdash.api.schemas.calls import Rejected
from helmdash.api.schemas.reports import BATCH, CALL
from helmdash.core.calls.capture import Capture, is_too_old
from helmdash.core.calls.routes import CallRoute
from helmdash.doors.bodies.captures import to_capture

_TOO_OLD: Final = (FieldFault("started_at", "is older than the project keeps its calls"),)


def read_batch(
    request: HttpRequest, *, access: Access, at: datetime
) -> tuple[list[tuple[int, Capture]], list[Rejected]]:
    """The good calls of a batch with their places, and the bad ones with their faults.

    access: who made calls that do not say so, and of which project; at: when those began.
    Raises Problem when the batch itself is not one.
    """
    value, is_suspect = read_json(request)
    batch = validate(value, BATCH)
    good: list[tuple[int, Capture]] = []
    rejected: list[Rejected] = []
    kept_since = access.project.kept_since(at)
    check = CALL.adapter.validate_python
    for index, item in enumerate(batch["calls"]):
        faults = unstorable(item) if is_suspect else ()
        try:
            call = check(item)
        except ValidationError as error:
            faults += faults_of(error, known=CALL.known)
        else:
            if not faults:
                capture = to_capture(call, route=CallRoute.API, caller=access.name, at=at)
                if is_too_old(capture, kept_since):
                    rejected.append(Rejected(index=index, errors=_TOO_OLD, is_too_old=True))
                else:
                    good.append((index, capture))
        if faults:
            rejected.append(_rejected(index, faults))
    return good, rejected


def _rejected(index: int, faults: Sequence[FieldFault]) -> Rejected:
    return Rejected(index=index, errors=tuple(faults))
