"""Where a redirect may lead: to the same host only, for a key goes with the request."""

from __future__ import annotations

import httpx

from helmdash.core.upstreams.addresses import path_problem
from helmdash.upstream.guard import Refused

# 301, 302 and 303 make a GET of a POST: followed for GET only.
_REPEATING = frozenset({307, 308})
_FOR_GET = frozenset({301, 302, 303})
_FOLLOWED = _REPEATING | _FOR_GET
# Neither an answer nor a refusal: 300 and 304, which nobody asks for, are a redirect, too.
RANGE = range(300, 400)
# A trailing slash, a moved prefix, http to https: more is a loop.
_MOST_HOPS = 3

_PORTS = {"http": 80, "https": 443}
# A host's name has up to 253 characters; nobody reads that many.
_MOST_PLACE_CHARS = 120


def target(url: str, location: str | None, *, status: int, is_post: bool, hops: int) -> str:
    """The URL to go to. location None: the answer names none. Raises Refused; its message goes on
    from "Upstream x redirects"."""
    if status not in _FOLLOWED:
        raise Refused(f"with HTTP {status}, which leads nowhere. Correct its base URL.")
    if not location:
        raise Refused(f"without saying where to (HTTP {status}).")
    if hops > _MOST_HOPS:
        raise Refused(f"more than {_MOST_HOPS} times.")
    old = httpx.URL(url)
    try:
        new = old.join(location).copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError):
        raise Refused("to something that is no URL.") from None
    if not _is_same_host(old, new):
        raise Refused(
            f"to {_place(new)}, where it is not followed: its key stays with its "
            "host. Correct its base URL."
        )
    if is_post and status not in _REPEATING:
        raise Refused(f"with HTTP {status}, which would drop the request. Correct its base URL.")
    problem = path_problem(new.raw_path.decode("ascii"))
    if problem is not None:
        raise Refused(f"to a URL that may not be called. {problem}")
    return str(new)


def _place(url: httpx.URL) -> str:
    """Scheme, host and port, also where the port goes without saying."""
    place = url.netloc.decode("ascii")
    port = _PORTS.get(url.scheme) if url.port is None else None
    whole = f"{url.scheme}://{place}:{port}" if port and place else f"{url.scheme}://{place}"
    return whole[:_MOST_PLACE_CHARS]


def _is_same_host(old: httpx.URL, new: httpx.URL) -> bool:
    if new.host != old.host or new.userinfo:
        return False
    if new.scheme == old.scheme:
        return new.port == old.port
    return (old.scheme, new.scheme) == ("http", "https") and new.port in (None, old.port)
