"""Upstreams of the environment that no call may go to: said at the start, with the line to add.

The guard judges the address that a connection is made to, so names are looked up here as well.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooSlow
from urllib.parse import urlsplit

from helmdash.core.upstreams.addresses import address_problem, shown_url, url_problem, with_setting
from helmdash.core.upstreams.endpoints import PRIVATE_SETTING, Endpoint, EndpointSource

# A resolver without a network answers after some seconds; a start need not wait for it.
_PATIENCE_S = 2.0

Resolve = Callable[[str], Iterable[str]]


def refused_upstreams(
    endpoints: Iterable[Endpoint], *, resolve: Resolve | None = None
) -> list[str]:
    """A sentence for each endpoint that may not be called, with the line to add where one helps.

    `resolve` gives the addresses of a host name, and may raise OSError; None: the system's.
    """
    found = [(each, refusal_of(each, resolve=resolve)) for each in endpoints]
    return [
        f"{each.name} at {shown_url(each.base_url)} cannot be called: {problem}"
        for each, problem in found
        if problem
    ]


def refusal_of(endpoint: Endpoint, *, resolve: Resolve | None = None) -> str | None:
    """Why no call may go to an upstream, and what helps; None where one may. resolve: as above."""
    problem = _problem(endpoint, resolve or _addresses)
    if problem is None or endpoint.source is not EndpointSource.ENVIRONMENT:
        return problem
    return with_setting(problem, PRIVATE_SETTING)


def _problem(endpoint: Endpoint, resolve: Resolve) -> str | None:
    problem = url_problem(endpoint.base_url, allow_private=endpoint.allow_private)
    if problem or endpoint.allow_private:
        return problem
    try:
        addresses = list(resolve(urlsplit(endpoint.base_url).hostname or ""))
    except (OSError, ValueError):
        return None  # unreachable now is not refused: the first call tells
    problems = [address_problem(each, allow_private=False) for each in addresses]
    # One address that may be called is enough.
    return problems[0] if problems and all(problems) else None


def _addresses(host: str) -> list[str]:
    """The addresses of a name; none where the resolver takes too long. Raises OSError."""
    pool = ThreadPoolExecutor(1)
    try:
        found = pool.submit(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
        return [str(info[4][0]) for info in found.result(_PATIENCE_S)]
    except TooSlow:
        return []
    finally:
        pool.shutdown(wait=False)
