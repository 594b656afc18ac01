"""`Idempotency-Key`: a POST that creates may be sent again without being carried out again.

An `id` in the body of a call rules over it: a call with an id is safe to repeat anyway, and says
`duplicate`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from helmdash.api.auth import access_of
from helmdash.api.leases import Leases
from helmdash.api.problems import Code, Problem, invalid_field
from helmdash.operations import idempotency
from helmdash.operations.database.clock import shared_now
from helmdash.operations.idempotency import (
    AnotherBody,
    AnswerNotKept,
    Claim,
    FirstAnswer,
    InProgress,
)

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
MOST_CHARS = 255

logger = logging.getLogger(__name__)

_leases = Leases()
_VALUE = re.compile(r"[\x20-\x7e]{1,255}")
# What an answer says beside its body.
_KEPT_HEADERS = ("Content-Type", "Location", "Preference-Applied")

View = Callable[..., HttpResponseBase]
Unless = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """How a route honours the header.

    unless: bodies that are safe to repeat by themselves, for which the header means nothing.
    """

    unless: Unless | None = None


def carried_out_once(view: View, once: Once) -> View:
    """The view, which gives its first answer again to a request that is a repeat of one."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: object, **parts: object) -> HttpResponseBase:
        value = request.headers.get(HEADER)
        key_id = access_of(request).key_id
        # Without a key there is nobody to keep it for.
        if value is None or key_id is None:
            return view(request, *args, **parts)
        value = value.strip()
        _check(value)
        if once.unless is not None and once.unless(request.body):
            return view(request, *args, **parts)
        claimed = _claim(request, key_id, value, once)
        if isinstance(claimed, FirstAnswer):
            return _again(claimed)
        return _carry_out(claimed, lambda: view(request, *args, **parts))

    return wrapped


def names_its_call(body: bytes) -> bool:
    """True for a call with an `id`: repeating it is safe without the header."""
    return _has_id(_parsed(body))


def names_its_calls(body: bytes) -> bool:
    """True for a batch whose calls all have an `id`: repeating it is safe without the header."""
    parsed = _parsed(body)
    calls = parsed.get("calls") if isinstance(parsed, dict) else parsed
    return isinstance(calls, list) and bool(calls) and all(map(_has_id, calls))


def _check(value: str) -> None:
    if _VALUE.fullmatch(value) is None:
        raise invalid_field(
            HEADER, f"use 1 to {MOST_CHARS} printable ASCII characters, such as a UUID"
        )


def _claim(request: HttpRequest, key_id: int, value: str, once: Once) -> Claim | FirstAnswer:
    try:
        return idempotency.claim(
            key_id=key_id,
            path=request.path,
            value=value,
            body=request.body,
            now=shared_now(),
        )
    except AnotherBody:
        raise invalid_field(
            HEADER,
            "came with another body within the last 24 hours; use a new one for a new request",
        ) from None
    except InProgress as error:
        raise Problem(
            code=Code.CONFLICT,
            detail=f"The first request with this {HEADER} is still being carried out. "
            f"Try again in {error.wait_s} seconds.",
            headers={"Retry-After": str(error.wait_s)},
        ) from None
    except AnswerNotKept:
        raise Problem(
            code=Code.CONFLICT,
            detail=f"The first request with this {HEADER} was carried out, but its answer cannot "
            "be given again: it was larger than 4 MiB, a conversation was erased since, or the "
            "server's secret key is another now.",
        ) from None


def _carry_out(claim: Claim, view: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    """Only answers with 2xx are kept: after anything else, the same request may succeed."""
    try:
        with _leases.holding(claim):
            response = view()
    except BaseException:
        _release(claim)
        raise
    if not isinstance(response, HttpResponse) or not 200 <= response.status_code < 300:
        _release(claim)
        return response
    headers = {name: response[name] for name in _KEPT_HEADERS if name in response}
    answer = FirstAnswer(status=response.status_code, headers=headers, body=response.content)
    try:
        idempotency.keep(claim, answer, now=shared_now())
    except Exception:
        # What was done is done, and its client is told. A repeat waits until the lease is over.
        logger.exception("an answer could not be kept for a repeat of its request")
    return response


def _release(claim: Claim) -> None:
    try:
        idempotency.release(claim)
    except Exception:
        logger.exception("a request that failed cannot be repeated until its lease is over")


def _again(kept: FirstAnswer) -> HttpResponse:
    response = HttpResponse(kept.body, status=kept.status)
    for name, value in kept.headers.items():
        response[name] = value
    response["Cache-Control"] = "no-store"
    response[REPLAYED] = "true"
    return response


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _has_id(call: Any) -> bool:
    return isinstance(call, dict) and call.get("id") is not None
