"""One decorator for every route: who may call it, what it takes and gives, how it is documented.

ninja dispatches and authenticates (ADR 28 has why no more); so a body is validated once, and the
OpenAPI (helmdash.api.openapi.document) is made from the very types that validate and answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router

from helmdash.api.auth import Needs
from helmdash.api.idempotency import Once, carried_out_once
from helmdash.api.parsing import Shape, refuse_query
from helmdash.api.preconditions import EDITS, refuse_guard
from helmdash.api.problems import Code, not_found

View = Callable[..., HttpResponseBase]

# What can go wrong wherever a key is needed, a body is read, something is looked up.
_ALWAYS = (
    Code.MALFORMED,
    Code.UNAUTHORIZED,
    Code.TOO_MANY_REQUESTS,
    Code.INTERNAL,
    Code.UNAVAILABLE,
)
_WITH_BODY = (Code.TOO_LARGE, Code.UNSUPPORTED_MEDIA_TYPE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One good answer: what it means, its shape (None: no body), and an example."""

    meaning: str
    shape: Any = None
    example: object = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Everything the OpenAPI says about a route."""

    name: str
    method: str
    path: str
    tag: str
    scope: str | None
    summary: str
    description: str
    answers: Mapping[int, Answer]
    problems: tuple[Code, ...]
    body: Any = None
    is_body_optional: bool = False
    body_examples: Mapping[str, object] = field(default_factory=dict)
    query: Shape[Any] | None = None
    once: Once | None = None
    is_guarded: bool = False


ROUTES: list[Route] = []


def route(
    router: Router,
    method: str,
    path: str,
    *,
    tag: str,
    scope: str | None,
    answers: Mapping[int, Answer],
    body: Any = None,
    is_body_optional: bool = False,
    body_examples: Mapping[str, object] | None = None,
    query: Shape[Any] | None = None,
    may: tuple[Code, ...] = (),
    once: Once | None = None,
    is_guarded: bool = False,
) -> Callable[[View], View]:
    """Register a view. Its docstring's first line is the summary, the rest the description.

    scope: what the key must carry; None: any valid key. may: problems besides the usual ones.
    once: how it honours `Idempotency-Key`, which every POST does that creates; None: not at all.
    is_guarded: the view looks at `If-Match`.
    """

    def register(view: View) -> View:
        summary, _, rest = (view.__doc__ or "").strip().partition("\n")
        codes = (*_ALWAYS, *may, Code.INVALID)
        codes += (Code.FORBIDDEN,) if scope else ()
        codes += _WITH_BODY if body is not None else ()
        codes += (Code.CONFLICT,) if once else ()
        codes += (Code.CHANGED,) if is_guarded else ()
        ROUTES.append(
            Route(
                name=view.__name__,
                method=method,
                path=path,
                tag=tag,
                scope=scope,
                summary=summary.rstrip("."),
                description=" ".join(rest.split()),
                answers=answers,
                problems=tuple(dict.fromkeys(codes)),
                body=body,
                is_body_optional=is_body_optional,
                body_examples=body_examples or {},
                query=query,
                once=once,
                is_guarded=is_guarded,
            )
        )
        served = view if query else _without_query(view)
        served = carried_out_once(served, once) if once else served
        served = served if is_guarded or method not in EDITS else _without_guard(served)
        served = _of_possible_ids(served) if Code.NOT_FOUND in may else served
        router.api_operation(
            [method], path, auth=Needs(scope), url_name=view.__name__, include_in_schema=False
        )(served)
        return view

    return register


def _of_possible_ids(view: View) -> View:
    """The view, for which nothing is called by U+0000: PostgreSQL cannot even be asked for it."""

    @wraps(view)
    def refusing(request: HttpRequest, *args: object, **parts: object) -> HttpResponseBase:
        if any(isinstance(each, str) and "\x00" in each for each in parts.values()):
            raise not_found("Nothing has an id with the character U+0000.")
        return view(request, *args, **parts)

    return refusing


def _without_guard(view: View) -> View:
    """The view, which edits what has no ETag."""

    @wraps(view)
    def refusing(request: HttpRequest, *args: object, **parts: object) -> HttpResponseBase:
        refuse_guard(request)
        return view(request, *args, **parts)

    return refusing


def _without_query(view: View) -> View:
    """The view, of which every query parameter is unknown."""

    @wraps(view)  # ninja reads the parts of the path off the signature
    def refusing(request: HttpRequest, *args: object, **parts: object) -> HttpResponseBase:
        refuse_query(request)
        return view(request, *args, **parts)

    return refusing
