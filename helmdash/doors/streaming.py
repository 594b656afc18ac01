"""Long answers, sent as they are made, under both of Django's handlers.

Under ASGI Django gathers a plain iterator in memory before it sends the first byte; so there it
gets an asynchronous one that takes its pieces in the request's own thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextvars import Context, copy_context
from itertools import islice

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

# Lines sent together: a hop between threads for each line would cost more than the line.
_LINES = 200


def stream(
    request: HttpRequest, lines: Iterator[bytes], *, content_type: str
) -> StreamingHttpResponse:
    """A streamed answer of lines. Closes a generator when the client leaves early."""
    # They are made when the view is left already, and are to be read from where it would read.
    pieces = _pieces(lines, copy_context())
    if isinstance(request, ASGIRequest):
        return StreamingHttpResponse(_asynchronous(lines, pieces), content_type=content_type)
    return StreamingHttpResponse(pieces, content_type=content_type)


def _pieces(lines: Iterator[bytes], context: Context) -> Iterator[bytes]:
    while piece := context.run(b"".join, islice(lines, _LINES)):
        yield piece


def _next(pieces: Iterator[bytes]) -> bytes:
    return next(pieces, b"")


async def _asynchronous(lines: Iterator[bytes], pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    try:
        while (piece := await sync_to_async(_next)(pieces)) != b"":
            yield piece
    finally:
        close = getattr(lines, "close", None)
        if close is not None:
            await sync_to_async(close)()
