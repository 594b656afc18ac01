"""What of a client's headers goes on to the upstream."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from helmdash.gateway.refusals import in_a_circle
from helmdash.providers.protocols import HttpRequest

# What a client may say to a provider of its own format, besides its body. Nothing else of its
# headers goes on: not its key, which is ours, and not what steers the connection.
_CLIENT_HEADERS = ("anthropic-version", "anthropic-beta", "openai-beta")
# How many gateways of ours a request has come through: an upstream's address may lead back here.
_FROM_US = re.compile(rb"helmdash(?: \(hop (\d)\))?")
# A team's gateway behind a person's own is sensible; more than that is a circle.
_MOST_HOPS = 3


def with_client_headers(
    request: HttpRequest, headers: Mapping[bytes, bytes], *, is_native: bool, upstream: str
) -> HttpRequest:
    """The request as this client sends it.

    Raises Refusal (421) where the address of `upstream` leads back to us.
    """
    if is_native:
        request = _with_vendor_headers(request, headers)
    hops = _hops_before(headers, upstream)
    if hops == 0:
        return request
    agent = ("user-agent", f"helmdash (hop {hops})")
    return replace(request, headers=(*request.headers, agent))


def _with_vendor_headers(request: HttpRequest, headers: Mapping[bytes, bytes]) -> HttpRequest:
    told = [
        (name, value.decode("latin-1"))
        for name in _CLIENT_HEADERS
        if (value := headers.get(name.encode())) is not None
    ]
    if not told:
        return request
    names = {name for name, _ in told}
    kept = [(name, value) for name, value in request.headers if name.lower() not in names]
    return replace(request, headers=(*kept, *told))


def _hops_before(headers: Mapping[bytes, bytes], upstream: str) -> int:
    found = _FROM_US.fullmatch(headers.get(b"user-agent", b""))
    if found is None:
        return 0
    hops = int(found[1] or 0) + 1
    if hops > _MOST_HOPS:
        raise in_a_circle(upstream)
    return hops
