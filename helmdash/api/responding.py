"""Answers: compact JSON, and on reads an ETag, so that a client that polls gets 304 and no body."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags

from helmdash.doors.bodies.jsontext import dump_json

CONTENT_TYPE = "application/json"


class Answered(NamedTuple):
    """What a write led to, and the status by which it is told."""

    value: object
    status: int = 200


def answer(value: object, *, status: int = 200) -> HttpResponse:
    """What a write or a computation led to."""
    response = HttpResponse(dump_json(value), status=status, content_type=CONTENT_TYPE)
    response["Cache-Control"] = "no-store"
    return response


def read(request: HttpRequest, value: object, *, stamp: object = None) -> HttpResponse:
    """What a read found, with its ETag; 304 when the client has it already.

    stamp: what the ETag is made of when the body says the time or is expensive to compare.
    """
    body = dump_json(value)
    basis = body if stamp is None else dump_json(stamp)
    tag = f'"{hashlib.blake2b(basis, digest_size=12).hexdigest()}"'
    response: HttpResponse
    if _has(request, tag):
        response = HttpResponseNotModified()
    else:
        response = HttpResponse(body, content_type=CONTENT_TYPE)
    response["ETag"] = tag
    # Private: it belongs to one key. no-cache: ask again each time, which costs no body.
    response["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["Authorization", "Cookie"])
    return response


def _has(request: HttpRequest, tag: str) -> bool:
    wanted = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in wanted or any(each.removeprefix("W/") == tag for each in wanted)
