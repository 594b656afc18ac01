"""The egress guard: which URL may be called, and which address may be connected to.

The address is checked where the socket for it is made, so it is the one that is connected to: a
name that leads elsewhere a moment later, or is spelt in an odd way, gains nothing.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from helmdash.core.upstreams.addresses import address_problem, path_problem, url_problem
from helmdash.core.upstreams.endpoints import Endpoint

# (family, type, protocol, canonical name, address), as getaddrinfo gives it.
AddressInfo: TypeAlias = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int]]

# A model may think for minutes and send nothing; routers forget silent connections. The numbers
# are those of the official SDKs of OpenAI and Anthropic.
_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5))


class Refused(Exception):
    """A URL may not be called; the message is a sentence that says why."""


class RefusedAddress(OSError):
    """An address may not be connected to; the message is a sentence that says why.

    An OSError, so that the client goes on to the host's other addresses.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(errno.EPERM, sentence)
        self.sentence = sentence


def checked_url(endpoint: Endpoint, path: str) -> str:
    """The base URL and the path, put together. Raises Refused, with a sentence, for what may not be
    called."""
    return _checked_url(endpoint.base_url, path, endpoint.allow_private)


# Paths hold names of models that callers chose, so there is no end of them.
@lru_cache(maxsize=1024)
def _checked_url(base_url: str, path: str, allow_private: bool) -> str:
    base = base_url.rstrip("/")
    problem = url_problem(base, allow_private=allow_private)
    if problem is None:
        problem = path_problem(path) if path.startswith("/") else "Its path must start with a /."
    if problem is not None:
        raise Refused(problem)
    return base + path


def socket_maker(*, allow_private: bool) -> Callable[[AddressInfo], socket.socket]:
    """A function that makes the socket for an address. It raises RefusedAddress."""

    def make(info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        problem = address_problem(address[0], allow_private=allow_private)
        if problem is not None:
            raise RefusedAddress(problem)
        made = socket.socket(family=family, type=kind, proto=protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            option = getattr(socket, name, None)  # not on every system
            if option is not None:
                made.setsockopt(socket.IPPROTO_TCP, option, value)
        return made

    return make
