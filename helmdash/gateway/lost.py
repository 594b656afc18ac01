"""Requests for addresses that are not there: told the right one, in the format of who asks.

A redirect to the sign-in page is an answer for browsers; an SDK takes the page for a reply and
fails somewhere else. No key is asked for: whoever is lost most likely has none of ours yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.urls import Resolver404, resolve
from django.utils import timezone

from helmdash import conf
from helmdash.core.access.wrong_addresses import Dialect, advice, dialect_of
from helmdash.doors.answers import send_problem
from helmdash.doors.asgi import Scope, Send
from helmdash.doors.callers.keys import presented_keys
from helmdash.doors.callers.knocks import Knocks
from helmdash.doors.problems import not_found as problem_not_found
from helmdash.gateway.refusals import not_found
from helmdash.gateway.responder import Header, Responder
from helmdash.providers.registry import CLIENTS

# Files of pages, which no program asks for by mistake.
_PAGES_ONLY = ("/static/", "/login/", "/admin/")
# What answers to keys, or to anybody.
_FOR_PROGRAMS = (
    "/api/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/favicon.ico",
    "/connect/helmdash.pyz",
)
# A page of ours that OpenAI's clients ask for where their base URL lacks /v1.
_AMBIGUOUS = frozenset({"/models", "/models/"})
# The name of Django's route for all that is not there below /api/v1 (helmdash.api).
_NOTHING = "api-nothing"
_SESSION = settings.SESSION_COOKIE_NAME.encode()
_CLOSE: tuple[Header, ...] = ((b"connection", b"close"),)


def is_lost(scope: Scope, headers: Mapping[bytes, bytes], *, is_unknown_route: bool) -> bool:
    """Whether a program asks for an address that is not there.

    is_unknown_route: the path is below one of the gateway's own, and none of its endpoints.
    """
    path = scope["path"]
    if path.startswith(_PAGES_ONLY) or _is_browser(headers):
        return False
    if is_unknown_route or path in _AMBIGUOUS or not _is_there(path):
        return True
    # A page would send whoever brings a key, and no browser, to the sign-in page.
    return path != "/" and not path.startswith(_FOR_PROGRAMS) and bool(presented_keys(headers))


async def turn_back(
    scope: Scope, headers: Mapping[bytes, bytes], send: Send, knocks: Knocks
) -> None:
    """Answer 404 with the right address, and count it."""
    path, method = scope["path"], scope["method"]
    dialect = dialect_of(path, headers)
    told = advice(dialect, path, _base(headers, scope["scheme"]))
    knocks.note(
        method=method,
        path=path,
        user_agent=headers.get(b"user-agent", b"").decode("latin-1"),
        dialect=dialect,
        advice=told,
        now=timezone.now(),
    )
    if dialect is Dialect.PROBLEM:
        await send_problem(send, problem_not_found(told))
        return
    await Responder(send, CLIENTS[dialect.value]).error(not_found(told).error, _CLOSE)


def _is_browser(headers: Mapping[bytes, bytes]) -> bool:
    return (
        b"text/html" in headers.get(b"accept", b"")
        or b"sec-fetch-dest" in headers
        or b"hx-request" in headers
        or _SESSION + b"=" in headers.get(b"cookie", b"")
    )


# Ids are part of paths, so there is a bound.
@lru_cache(maxsize=2048)
def _is_there(path: str) -> bool:
    """Whether Django answers at a path, or leads to it by adding the slash at its end."""
    for each in (path, f"{path}/"):
        try:
            if resolve(each).url_name != _NOTHING:
                return True
        except Resolver404:
            continue
    return False


def _base(headers: Mapping[bytes, bytes], scheme: str) -> str:
    """Our own address as the client should have it: the public one, or the one it used."""
    env = conf.env()
    if env.public_url:
        return env.public_url
    host = headers.get(b"host", b"").decode("latin-1")
    name, _ = split_domain_port(host)
    if not name or not validate_host(name, settings.ALLOWED_HOSTS):
        host = f"127.0.0.1:{env.port}"
    return f"{scheme}://{host}"
