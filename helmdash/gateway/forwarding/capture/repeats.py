"""Streams that a client asks for again because they broke off: attempts 2, 3 … at one request."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from datetime import datetime, timedelta

from helmdash.core.calls.capture import Capture
from helmdash.gateway.exchange import Exchange

# Agents try again at once, five times or so, with growing waits.
_LONGEST_WAIT = timedelta(minutes=10)
_MOST = 10_000


class RepeatedStreams:
    """The broken streams of this process. Used on one event loop.

    What a client repeats is known by its conversation's name, where it has one, and by all that the
    request says; a shorter memory than a server's life is enough.
    """

    def __init__(self) -> None:
        self._broken: OrderedDict[tuple[object, ...], tuple[int, datetime]] = OrderedDict()

    def numbered(self, exchange: Exchange, capture: Capture) -> Capture:
        """The call with the attempts before it counted, and kept in mind if it broke off."""
        links, request = capture.links, exchange.request
        if links is None or not links.head or request is None or not request.stream:
            return capture
        key = (exchange.asker, capture.model, capture.conversation, links.head, links.after)
        before, at = self._broken.pop(key, (0, exchange.started_at))
        if exchange.started_at - at > _LONGEST_WAIT:
            before = 0
        attempt = capture.attempt + before
        if capture.status == "error":
            self._broken[key] = (attempt, exchange.started_at)
            while len(self._broken) > _MOST:
                self._broken.popitem(last=False)
        return replace(capture, attempt=attempt) if before else capture
