"""Which of a client's formats an upstream speaks, where nobody has said it.

It is asked once in the client's own format; one that has no such address is remembered for a day,
and is spoken to in its own format meanwhile. One for each process.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.protocols import ClientFormat
from helmdash.providers.wire import WireError

# A server that was brought up to date may speak it from tomorrow on.
_REMEMBERED_S = 86_400.0
_MOST_REMEMBERED = 1_024
# How servers answer at an address that they do not have.
_NOT_THERE = (404, 405, 501)
# Addresses that hosts leave out although they speak the format.
_SELDOM = frozenset({"openai_compact"})
# Words of a 404 that is about what was asked for there.
_ABOUT_CONTENT = ("model", "item with id", "previous response", "response with id", "conversation")


class SpokenFormats:
    """What has been found out of upstreams; used on one event loop."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds that only grow."""
        self._clock = clock
        self._missing: dict[tuple[str, str], float] = {}  # until when it counts

    def is_spoken(self, endpoint: Endpoint, client: ClientFormat) -> bool:
        """Whether an upstream is asked in this client's own format, at the address of that."""
        if not endpoint.may_speak(client.wire):
            return False
        until = self._missing.get((endpoint.base_url, client.name), 0.0)
        return _is_certain(endpoint, client) or until <= self._clock()

    def learn(
        self, endpoint: Endpoint, client: ClientFormat, error: WireError, *, status: int
    ) -> bool:
        """Take note of a refusal; whether it says that the upstream does not speak this format."""
        if _is_certain(endpoint, client):
            return False
        if status not in _NOT_THERE or _is_about_content(error):
            return False
        if len(self._missing) >= _MOST_REMEMBERED:
            self._missing.clear()
        self._missing[endpoint.base_url, client.name] = self._clock() + _REMEMBERED_S
        return True


def _is_certain(endpoint: Endpoint, client: ClientFormat) -> bool:
    """Whether an upstream is known to have what this client asks for."""
    is_told = client.wire in endpoint.formats or client.wire is endpoint.own_format
    return is_told and client.name not in _SELDOM


def _is_about_content(error: WireError) -> bool:
    said = f"{error.code or ''} {error.message}".lower()
    return any(words in said for words in _ABOUT_CONTENT)
