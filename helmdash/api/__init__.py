"""The JSON API: `api`, with every route below /api/v1.

ninja dispatches; what it would answer in its own shape (405, unknown addresses) is put into ours
here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, path, re_path
from ninja import NinjaAPI

import helmdash
from helmdash.api.handlers import add_handlers
from helmdash.api.openapi import page
from helmdash.api.problems import Code, Problem, not_found, problem_response
from helmdash.api.routers import (
    assembling,
    budgets,
    calls,
    care,
    catalogs,
    conversations,
    evidence,
    fitting,
    hooks,
    planning,
    plans,
    trims,
    whatif,
)

__all__ = ["api"]


class Api(NinjaAPI):
    """NinjaAPI whose every answer below its prefix is ours, the wrong ones included."""

    def _get_urls(self) -> list[URLResolver | URLPattern]:
        found: list[URLResolver | URLPattern] = [
            path("openapi.json", _in_our_shape(page.openapi_json), name="openapi-json"),
            path("docs", _in_our_shape(page.docs_page), name="docs"),
        ]
        for pattern in super()._get_urls():
            if isinstance(pattern, URLPattern) and pattern.name != "api-root":
                pattern.callback = _in_our_shape(pattern.callback)
                found.append(pattern)
        found.append(path("", _nothing_here, name="api-root"))
        # Line breaks included, which no id of ours has and `<path:>` does not match.
        found.append(re_path(r"^(?P<rest>[\s\S]+)$", _nothing_here, name="api-nothing"))
        return found


def _in_our_shape(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    @wraps(view)  # keeps csrf_exempt: a cookie authenticates no write here
    def wrapped(request: HttpRequest, *args: object, **parts: object) -> HttpResponseBase:
        method = request.method
        # What answers GET answers HEAD (RFC 9110); the server leaves the body out.
        request.method = "GET" if method == "HEAD" else method
        response = view(request, *args, **parts)
        request.method = method
        if response.status_code != 405:
            return response
        methods = set(response["Allow"].split(", "))
        allowed = ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))
        return problem_response(
            request,
            Problem(
                code=Code.METHOD_NOT_ALLOWED,
                detail=f"{method} is not possible here; use {allowed}.",
                headers={"Allow": allowed},
            ),
        )

    return wrapped


def _nothing_here(request: HttpRequest, rest: str = "") -> HttpResponse:
    problem = not_found("There is nothing at this address; /api/v1/docs lists what there is.")
    return problem_response(request, problem)


_nothing_here.csrf_exempt = True  # type: ignore[attr-defined]  # else a POST gets an HTML 403

api = Api(
    title="HelmDash",
    version=helmdash.__version__,
    urls_namespace="api",
    openapi_url=None,
    docs_url=None,
)
add_handlers(api)
for _router in (
    calls,
    conversations,
    care,
    hooks,
    fitting,
    trims,
    assembling,
    planning,
    plans,
    catalogs,
    budgets,
    evidence,
    whatif,
):
    api.add_router("", _router.router)
