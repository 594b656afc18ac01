"""Who asks: the owner of an API key, found once for each request, for tools and resources alike."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError
from django.http.request import split_domain_port, validate_host
from django.utils import timezone

from helmdash.mcp.refusals import bad_host, bad_origin, unauthorized, unavailable
from helmdash.mcp.threads import Threads
from helmdash.operations import access
from helmdash.queries.access import Caller, find_caller

log = logging.getLogger(__name__)


async def identify(headers: Mapping[bytes, bytes], threads: Threads) -> Caller:
    """The owner of the key that the headers carry. Raises Refusal (401, 503)."""
    key = _key_of(headers)
    if key is None:
        raise unauthorized(is_known_kind=False)
    try:
        caller = await threads.run(_look_up, key)
    except DatabaseError:
        log.exception("an API key could not be checked")
        raise unavailable("The API key cannot be checked: the database is away.") from None
    if caller is None:
        raise unauthorized(is_known_kind=True)
    return caller


def check_address(headers: Mapping[bytes, bytes]) -> None:
    """Refuse requests by other names of this server, and by pages of other sites.

    What the MCP specification wants against DNS rebinding, by the hosts that the whole server
    answers to. An origin that is no web page (an editor's) has no name that could be turned.
    Raises Refusal (400, 403).
    """
    host = headers.get(b"host", b"").decode("latin-1")
    if not _is_own(host):
        raise bad_host(host)
    origin = headers.get(b"origin", b"").decode("latin-1").strip()
    scheme, _, place = origin.partition("://")
    is_page = scheme.lower() in ("http", "https", "null")
    if is_page and not _is_own(place):
        raise bad_origin(origin)


def _key_of(headers: Mapping[bytes, bytes]) -> str | None:
    scheme, _, key = headers.get(b"authorization", b"").strip().partition(b" ")
    if scheme.lower() == b"bearer" and key.strip():
        return key.strip().decode("latin-1")
    return headers.get(b"x-api-key", b"").strip().decode("latin-1") or None


def _look_up(key: str) -> Caller | None:
    caller = find_caller(key=key)
    if caller is not None:
        access.note_use(caller=caller, now=timezone.now())
    return caller


def _is_own(host: str) -> bool:
    """Whether the server answers to a `host` or `host:port`."""
    try:
        name, _ = split_domain_port(urlsplit(f"//{host}").netloc)
    except ValueError:
        return False
    return bool(name) and validate_host(name, settings.ALLOWED_HOSTS)
