"""Answers: compact JSON, and on reads an ETag: a client that polls gets 304 and no body, and one
that edits says by it what it has seen (helmdash.api.preconditions)."""

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


def answer(value: object, *, status: int = 200, is_whole: bool = False) -> HttpResponse:
    """What a write or a computation led to.

    is_whole: the value is what a read of the same thing gives, so that its ETag guards the next
    edit.
    """
    body = dump_json(value)
    response = HttpResponse(body, status=status, content_type=CONTENT_TYPE)
    response["Cache-Control"] = "no-store"
    if is_whole:
        response["ETag"] = _tag(body)
    return response


def read(request: HttpRequest, value: object, *, stamp: object = None) -> HttpResponse:
    """What a read found, with its ETag; 304 when the client has it already.

    stamp: what the ETag is made of when the body says the time or is expensive to compare.
    """
    body = dump_json(value)
    tag = _tag(body) if stamp is None else tag_of(stamp)
    response: HttpResponse
    if is_among(tag, request.headers.get("If-None-Match", "")):
        response = HttpResponseNotModified()
    else:
        response = HttpResponse(body, content_type=CONTENT_TYPE)
    response["ETag"] = tag
    # Private: it belongs to one key. no-cache: ask again each time, which costs no body.
    response["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["Authorization", "Cookie"])
    return response


def tag_of(value: object) -> str:
    """The ETag of a value, or of the stamp in its place."""
    return _tag(dump_json(value))


def is_among(tag: str, header: str) -> bool:
    """Whether a header names the ETag, or any (`*`). A proxy that compresses makes it a weak one,
    which is of the same value still."""
    wanted = parse_etags(header)
    return "*" in wanted or any(each.removeprefix("W/") == tag for each in wanted)


def _tag(text: bytes) -> str:
    return f'"{hashlib.blake2b(text, digest_size=12).hexdigest()}"'
