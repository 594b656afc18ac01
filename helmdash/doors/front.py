"""In front of the API and the pages: who asks is known before any body is read.

Django reads a whole body first and asks who sends it afterwards. So the key or the session is
looked up here, by the headers alone; a body is read only for those who are known, and for the
sign-in form, and then within limits. Everybody else is answered without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from time import monotonic

from django.core.exceptions import SuspiciousOperation
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse

from helmdash.doors.answers import send_page, send_problem, send_response
from helmdash.doors.asgi import (
    FAULT_KEY,
    App,
    Disconnected,
    Receive,
    Scope,
    Send,
    headers_of,
    note_known,
    replay,
)
from helmdash.doors.body import ANONYMOUS, Bodies, has_body, without_body
from helmdash.doors.callers.directory import Directory
from helmdash.doors.callers.keys import admit, admit_again, owner_of, presented_keys
from helmdash.doors.callers.proxies import address_of
from helmdash.doors.callers.sessions import Sessions
from helmdash.doors.callers.sign_in import SignInBrake
from helmdash.doors.callers.strangers import Strangers
from helmdash.doors.faults import BodyPacked, BodyTooLarge, BodyTooSlow, Fault, NoKey
from helmdash.doors.heavy import is_handed_on
from helmdash.doors.named_catalogs import CATALOG_PAGE, NamedCatalogs
from helmdash.doors.problems import problem_of_fault
from helmdash.doors.wanted import Wanted, wanted_of

API_PREFIX = "/api/v1/"
# The only bodies that are read from people nobody knows.
_SIGN_IN = "/login/"
_SIGN_IN_LINK = "/login/link/"
# To ask for a link to a new password; below it is where that is set.
_RESET = "/login/reset/"
# No request of these is about its body.
_READS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# What the key of a request allows, in its scope; missing where it has none.
KEY_CONTEXT_KEY = "helmdash.key_context"
# The body of a request, in its scope, where it was read.
BODY_KEY = "helmdash.body"
# What is told within the frame of the pages, which Django draws, to somebody who is signed in.
_OF_A_FORM = (BodyPacked, BodyTooLarge, BodyTooSlow)

# Gives the answer for somebody who has to sign in first.
TurnAway = Callable[[HttpRequest], HttpResponse | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The ASGI application `app`, which sees bodies only of those who may send them.

    turn_away: what a page answers to somebody who is not signed in; None from it means that `app`
    answers them, without their body.
    """

    app: App
    directory: Directory
    sessions: Sessions
    bodies: Bodies
    turn_away: TurnAway
    brake: SignInBrake = field(default_factory=SignInBrake)
    catalogs: NamedCatalogs = field(default_factory=NamedCatalogs)
    strangers: Strangers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "strangers", Strangers(self.sessions))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_api = scope["path"].startswith(API_PREFIX)
        answer = self._api if is_api else self._pages
        try:
            await answer(scope, receive, send)
        except Disconnected:
            return
        except Fault as fault:
            if is_api or wanted_of(headers_of(scope).get(b"accept", b"")) is Wanted.JSON:
                await send_problem(send, problem_of_fault(fault))
            else:
                await send_page(send, fault)

    async def _api(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Fault, Disconnected: nothing was answered then."""
        headers = headers_of(scope)
        sends_body = has_body(headers)
        if not presented_keys(headers):
            # People who are signed in may read; and what is open to all needs no key.
            if sends_body and scope["method"] not in _READS:
                raise NoKey
            reading = without_body(receive) if sends_body else receive
            await self.strangers.run(self.app, scope, headers, reading, send)
            return
        since = monotonic()
        key_context = scope[KEY_CONTEXT_KEY] = await admit(
            self.directory, headers, address=address_of(scope)
        )
        note_known(scope)
        if not sends_body:
            await self._worked_on(scope, receive, send, b"", key_context.caller.project.id)
            return
        async with self.bodies.reading(headers, receive, owner=owner_of(key_context)) as body:
            key_context = scope[KEY_CONTEXT_KEY] = await admit_again(
                self.directory, headers, key_context=key_context, since=since
            )
            await self._with_read_body(scope, receive, send, body, key_context.caller.project.id)

    async def _pages(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Fault, Disconnected: nothing was answered then."""
        headers = headers_of(scope)
        if not has_body(headers):
            if scope["path"] == CATALOG_PAGE and await self.sessions.find_user(headers):
                await self._worked_on(scope, receive, send, b"", None)
                return
            await self.strangers.run(self.app, scope, headers, receive, send)
        elif scope["method"] in _READS:
            await self.strangers.run(self.app, scope, headers, without_body(receive), send)
        elif _is_sign_in(scope["path"]):
            # A good link works for who has to wait, too.
            if scope["path"] in (_SIGN_IN, _RESET):
                await self.brake.check(address_of(scope))
            await self._with_body(scope, receive, send, ANONYMOUS)
        elif user := await self.sessions.find_user(headers):
            note_known(scope)
            try:
                await self._with_body(scope, receive, send, f"user {user}")
            except _OF_A_FORM as fault:
                await self.app({**scope, FAULT_KEY: fault}, without_body(receive), send)
        elif response := self._turned_away(scope):
            await send_response(send, response)
        else:
            await self.strangers.run(self.app, scope, headers, without_body(receive), send)

    def _turned_away(self, scope: Scope) -> HttpResponse | None:
        try:
            return self.turn_away(ASGIRequest(dict(scope), BytesIO()))
        except (SuspiciousOperation, UnicodeDecodeError):
            return None

    async def _with_body(self, scope: Scope, receive: Receive, send: Send, owner: str) -> None:
        async with self.bodies.reading(headers_of(scope), receive, owner=owner) as body:
            await self._with_read_body(scope, receive, send, body, None)

    async def _with_read_body(
        self, scope: Scope, receive: Receive, send: Send, body: bytes, project_id: int | None
    ) -> None:
        scope[BODY_KEY] = body
        await self._worked_on(scope, replay(body, receive), send, body, project_id)

    async def _worked_on(
        self, scope: Scope, receive: Receive, send: Send, body: bytes, project_id: int | None
    ) -> None:
        """Here or by the worker, of somebody who is known."""
        names_much = partial(self.catalogs.is_large, scope, body, project_id=project_id)
        if not await is_handed_on(scope, body, receive, send, names_much=names_much):
            await self.app(scope, receive, send)


def _is_sign_in(path: str) -> bool:
    return path == _SIGN_IN or path.startswith((_SIGN_IN_LINK, _RESET))
