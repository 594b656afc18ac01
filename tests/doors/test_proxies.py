"""What an application finds in its scope behind proxies, and in front of none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from helmdash.core.access.client_address import parse_networks
from helmdash.doors.asgi import Message, Receive, Scope, Send
from helmdash.doors.callers.proxies import address_of, behind_proxies


def seen(trusted: list[str], peer: Any, *headers: tuple[bytes, bytes]) -> tuple[str, str]:
    """Address and scheme that the application finds."""
    found: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        found.append(scope)

    async def nothing() -> Message:
        raise AssertionError

    async def ignore(message: Message) -> None:
        raise AssertionError

    scope = {"type": "http", "client": peer, "scheme": "http", "headers": list(headers)}

    async def ask() -> None:
        await behind_proxies(app, parse_networks(trusted))(scope, nothing, ignore)

    asyncio.run(ask())
    return address_of(found[0]), found[0]["scheme"]


_FOR = (b"x-forwarded-for", b"203.0.113.9")
_HTTPS = (b"x-forwarded-proto", b"https")


@pytest.mark.parametrize(
    ("trusted", "peer", "headers", "expected"),
    [
        ([], ("127.0.0.1", 1), (_FOR, _HTTPS), ("127.0.0.1", "http")),
        (["10.0.0.1"], ("127.0.0.1", 1), (_FOR, _HTTPS), ("127.0.0.1", "http")),
        (["127.0.0.0/8"], ("127.0.0.1", 1), (_FOR, _HTTPS), ("203.0.113.9", "https")),
        (["127.0.0.1"], ("127.0.0.1", 1), (), ("127.0.0.1", "http")),
        # A client that claims https through a proxy that says otherwise.
        (
            ["127.0.0.1"],
            ("127.0.0.1", 1),
            (_FOR, _HTTPS, (b"x-forwarded-proto", b"http")),
            ("203.0.113.9", "http"),
        ),
        (
            ["127.0.0.1"],
            ("127.0.0.1", 1),
            ((b"x-forwarded-proto", b"gopher"),),
            ("127.0.0.1", "http"),
        ),
        (["127.0.0.1"], None, (_FOR, _HTTPS), ("", "http")),
    ],
)
def test_only_named_proxies_speak_for_others(
    trusted: list[str], peer: Any, headers: Any, expected: tuple[str, str]
) -> None:
    assert seen(trusted, peer, *headers) == expected
