"""By which name this server is asked, and by whose page."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from helmdash.mcp.refusals import bad_host, bad_origin


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


def _is_own(host: str) -> bool:
    """Whether the server answers to a `host` or `host:port`."""
    try:
        name, _ = split_domain_port(urlsplit(f"//{host}").netloc)
    except ValueError:
        return False
    return bool(name) and validate_host(name, settings.ALLOWED_HOSTS)
