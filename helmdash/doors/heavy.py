"""What is too heavy for the process that clients wait for, handed to its worker: after the key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from helmdash.doors.asgi import Receive, Scope, Send
from helmdash.doors.faults import Fault
from helmdash.heavy import NoWorker, TooManyWaiting, forwarder_of, is_heavy

# What is sent there is a reply of a model, in which JSON is looked for.
_READS_TEXTS = "/api/v1/decode"


class LargeShareTaken(Fault):
    """This key has more large requests waiting than its share."""

    status = 429
    code = "too_many_requests"

    def __init__(self, error: TooManyWaiting) -> None:
        super().__init__(str(error))
        self.retry_after_s = error.retry_after_s


class LargeUnavailable(Fault):
    """All clients together have too many large requests, or nobody can take one just now."""

    status = 503
    code = "unavailable"

    def __init__(self, error: TooManyWaiting | NoWorker) -> None:
        super().__init__(str(error))
        self.retry_after_s = error.retry_after_s


async def is_handed_on(
    scope: Scope,
    body: bytes,
    receive: Receive,
    send: Send,
    *,
    is_large: bool = False,
    names_much: Callable[[], Awaitable[bool]] | None = None,
) -> bool:
    """Whether a request was heavy, and the worker has answered it. Raises Fault (429, 503).

    Every face asks this once it has a whole body of somebody it knows, and before it looks into it.
    is_large: it is heavy whatever its body is. names_much: tells whether what it names is heavy
    (`NamedCatalogs`); it reads the body, so that it is asked of those alone that are quickly read.
    """
    forwarder = forwarder_of(scope)
    if forwarder is None:
        return False
    reads_texts = scope.get("path") == _READS_TEXTS
    if not (is_large or is_heavy(body, reads_texts=reads_texts)) and not (
        names_much is not None and await names_much()
    ):
        return False
    try:
        await forwarder.forward(scope, body, receive, send)
    except TooManyWaiting as error:
        raise (LargeShareTaken if error.is_own else LargeUnavailable)(error) from None
    except NoWorker as error:
        raise LargeUnavailable(error) from None
    return True
