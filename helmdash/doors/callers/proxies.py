"""Requests as their clients made them, though a proxy handed them on.

uvicorn would do it for one proxy of this machine and believe any client there; here the operator
says which proxies there are (HELMDASH_TRUSTED_PROXIES), and nobody else is believed.
"""

from __future__ import annotations

from collections.abc import Sequence

from helmdash.core.access.client_address import Network, client_of, counted_as, is_trusted
from helmdash.doors.asgi import App, Receive, Scope, Send

_FOR = b"x-forwarded-for"
_PROTO = b"x-forwarded-proto"
_SCHEMES = frozenset({"http", "https"})


def behind_proxies(app: App, trusted: Sequence[Network]) -> App:
    """The application, which then finds the client's own address and scheme in its scope."""
    if not trusted:
        return app

    async def handed_on(scope: Scope, receive: Receive, send: Send) -> None:
        peer = scope.get("client")
        if peer and is_trusted(peer[0], trusted):
            scope["client"] = (client_of(peer[0], _lines(scope, _FOR), trusted=trusted), 0)
            # The one that came last is the one that our proxy wrote.
            scheme = ",".join(_lines(scope, _PROTO)).rpartition(",")[2].strip().lower()
            if scheme in _SCHEMES:
                scope["scheme"] = scheme
        await app(scope, receive, send)

    return handed_on


def address_of(scope: Scope) -> str:
    """Whom limits count a request as: its client's address, of IPv6 its /64; "" for none."""
    client = scope.get("client")
    return counted_as(client[0]) if client else ""


def _lines(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]
