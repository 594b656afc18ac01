"""`If-Match`: an edit by whoever read a thing earlier does not undo what others did since.

RFC 9110, 13.1.1. Of an edit that looks at no ETag the header is refused, never passed over: who
sends it relies on it.
"""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest

from helmdash.api.problems import Code, Problem
from helmdash.api.responding import is_among, tag_of

HEADER: Final = "If-Match"
# Methods that edit what their address names.
EDITS: Final = frozenset({"PATCH", "PUT", "DELETE"})


def is_guarded(request: HttpRequest) -> bool:
    """Whether the client says as what it has seen the thing that it edits."""
    return HEADER in request.headers


def require_match(request: HttpRequest, stands: object | None) -> None:
    """Raises Problem (412) where the client has seen another state than the one that stands.

    stands: what the ETag of the address is made of (helmdash.api.responding.read); None: nothing is
    there, which no ETag matches.
    """
    said = request.headers.get(HEADER)
    if said is not None and (stands is None or not is_among(tag_of(stands), said)):
        raise changed(request)


def changed(request: HttpRequest) -> Problem:
    """The 412 of an edit whose thing is not as the client has seen it."""
    return Problem(
        code=Code.CHANGED,
        detail="This is not as it was when the ETag of If-Match was given out: nothing is done. "
        f"Read it again (GET {request.path}), and repeat the edit with its new ETag.",
    )


def refuse_guard(request: HttpRequest) -> None:
    """For edits of what has no ETag: none can hold but `*`. Raises Problem (412)."""
    if request.headers.get(HEADER, "*").strip() != "*":
        raise Problem(
            code=Code.CHANGED,
            detail="What is edited here has no ETag, so that If-Match cannot hold: nothing is "
            "done. Leave the header out.",
        )
