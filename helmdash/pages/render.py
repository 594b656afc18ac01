"""Whole pages and fragments: one view gives either; a fragment that did not change is a 304.

A live fragment carries its own ETag (`data-etag`); the script sends it back with each poll. The tag
holds the newest recorded call and the minute, so that relative times move and a call that was
committed out of order is shown a minute later at the latest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails

from helmdash.core.access.permissions import Right
from helmdash.operations.jobs.kinds import DEMO
from helmdash.pages import scope
from helmdash.pages.addresses import in_project
from helmdash.pages.demo_banner import demo_loading
from helmdash.pages.zones import reader_zone
from helmdash.queries.calls import calls
from helmdash.queries.jobs import find_job

Arguments = ParamSpec("Arguments")

# Marks a part of a fragment that takes the place of another one than was asked for.
_OTHER_PART = b" hx-swap-oob"


class PageRequest(HttpRequest):
    """What the middleware adds to a request: who looks, at which moment, and what they have
    seen."""

    htmx: HtmxDetails
    user: User
    now: datetime
    state: str
    etag: str
    page: str
    panel: object
    views: object


View = Callable[Concatenate[PageRequest, Arguments], HttpResponse]


def show(
    request: PageRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    fragment: str | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page, or only its fragment when HTMX asks (None: the page has none); each says that it
    varies by that."""
    wanted = fragment if fragment is not None and request.htmx else template
    response = render(request, wanted, {**_shell(request), **context}, status=status)
    if wanted == fragment:
        response.content = _without_gaps(response.content)
    patch_vary_headers(response, ["HX-Request"])
    response["Cache-Control"] = "private, no-cache"
    return response


def _without_gaps(content: bytes) -> bytes:
    """A fragment without the blanks around its parts: a tab would keep those of each swap, and a
    page that stands open for a day swaps often."""
    pieces = content.split(_OTHER_PART)
    for index, piece in enumerate(pieces[:-1]):
        start = piece.rfind(b"<")
        pieces[index] = piece[:start].rstrip() + piece[start:]
    return _OTHER_PART.join(pieces).strip()


def show_fault(
    request: HttpRequest, template: str, context: Mapping[str, Any], *, status: int
) -> HttpResponse:
    """A page about what went wrong: within the usual frame for who is signed in, else bare."""
    return show_framed(request, template, context, status=status)


def show_framed(
    request: HttpRequest, template: str, context: Mapping[str, Any], *, status: int
) -> HttpResponse:
    """A page that is about no project: within the usual frame for members of one, else bare."""
    is_within = scope.find_around_error(request) is not None
    frame = {"frame": "base.html", **_shell(request)} if is_within else {"frame": "plain.html"}
    response = render(request, template, {**frame, **context}, status=status)
    response["Cache-Control"] = "no-store"
    return response


def live(view: View[Arguments]) -> View[Arguments]:
    """A page that polls a fragment of itself. Costs one query more than the view."""
    return live_with(lambda *_args, **_kwargs: "")(view)


def live_with(
    mark: Callable[Concatenate[PageRequest, Arguments], str],
) -> Callable[[View[Arguments]], View[Arguments]]:
    """A live page that also changes with `mark`, which is asked at each poll."""

    def decorate(view: View[Arguments]) -> View[Arguments]:
        @wraps(view)
        def answer(
            request: PageRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> HttpResponse:
            request.now = timezone.now()
            scoped = scope.read(request)
            zone = reader_zone(request)
            request.state = state(scoped, request.now, zone) + mark(request, *args, **kwargs)
            request.etag = etag(address(request), request.state)
            return unless_known(request, lambda: view(request, *args, **kwargs))

        return answer

    return decorate


def _shell(request: HttpRequest) -> dict[str, Any]:
    scoped = scope.read(request)
    # Where somebody goes on who changes the scheme: a form's answer cannot be asked for again.
    page = request.get_full_path() if request.method == "GET" else getattr(request, "page", "/")
    return {
        "scope": scoped,
        "now": getattr(request, "now", None) or timezone.now(),
        "etag": getattr(request, "etag", ""),
        "page_address": in_project(page, scoped.project.slug),
        "zone": reader_zone(request),
        "panel": getattr(request, "panel", None),
        "views": getattr(request, "views", None),
        "demo": demo_loading(find_job(DEMO)) if scoped.project.is_demo else None,
        "may_share": Right.SHARE_VIEWS in scoped.may,
    }


def address(request: HttpRequest) -> str:
    """The whole address of what is shown, its project included."""
    return in_project(request.get_full_path(), scope.read(request).project.slug)


def unless_known(request: PageRequest, answer: Callable[[], HttpResponse]) -> HttpResponse:
    """The answer; to a poll that has the fragment of `request.etag` already, a 304."""
    if request.htmx and request.headers.get("If-None-Match") == request.etag:
        response: HttpResponse = HttpResponseNotModified()
    else:
        response = answer()
    patch_vary_headers(response, ["HX-Request"])
    if request.htmx and response.status_code in (200, 304):
        response["ETag"] = request.etag
    return response


def state(scoped: scope.PageScope, now: datetime, zone: tzinfo) -> str:
    """What a live fragment depends on besides its address; zone: in which its times are told."""
    if not scoped.has_calls:
        # Nothing moves while we wait; a key that is shown only once must stay on the page.
        return f"{scoped.project.id}:waiting"
    return f"{scoped.project.id}:{calls.change_mark()}:{minute(now)}:{zone}"


def minute(now: datetime) -> int:
    """What a mark holds of the moment, so that relative times move."""
    return int(now.timestamp()) // 60


def etag(path: str, state: str) -> str:
    """The tag of a fragment: its address with the filters, and the state it shows."""
    text = f"{path}\n{state}"
    return f'"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"'
