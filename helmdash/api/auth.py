"""Who is calling: an API key, or, for reading only, somebody signed in to the pages.

Scopes: decisions.md "API". None implies another but admin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from django.http import HttpRequest
from django.utils import timezone

from helmdash.api.problems import Code, Problem
from helmdash.operations import access
from helmdash.queries.access import ProjectInfo, default_project, find_caller, find_project

# The pages remember the chosen project under this name (helmdash.pages is a sibling: not imported).
_SESSION_PROJECT = "project"
_KEY_NEEDED = "Send an API key: `Authorization: Bearer KEY`."
_KEY_UNKNOWN = "The API key is unknown or revoked. Make one with `manage.py apikey create`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The project a request acts on, and the name that is recorded as its caller."""

    project: ProjectInfo
    name: str


@dataclass(frozen=True, slots=True)
class Needs:
    """Authentication of one route: a key with the scope; None is any valid key."""

    scope: str | None

    def __call__(self, request: HttpRequest) -> Access:
        """Give the access or raise the Problem (401, 403). One query, and now and then a write."""
        key = presented_key(request)
        if key is None:
            return _signed_in(request)
        caller = find_caller(key=key)
        if caller is None:
            raise _unauthorized(_KEY_UNKNOWN, error="invalid_token")
        if self.scope is not None and not caller.may(self.scope):
            raise Problem(
                code=Code.FORBIDDEN,
                detail=f"The key {caller.name} lacks the scope {self.scope}.",
                headers={
                    "WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{self.scope}"'
                },
            )
        access.note_use(caller=caller, now=timezone.now())
        return Access(project=caller.project, name=caller.name)


def access_of(request: HttpRequest) -> Access:
    """What `Needs` found out for this request."""
    return cast("Access", request.auth)  # type: ignore[attr-defined]  # set by ninja


def presented_key(request: HttpRequest) -> str | None:
    """The key of the headers; None when there is none. Raises for another kind of credentials."""
    authorization = request.headers.get("Authorization", "").strip()
    if authorization:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise _unauthorized(_KEY_NEEDED, error="invalid_request")
        return key.strip()
    return request.headers.get("x-api-key", "").strip() or None


def _signed_in(request: HttpRequest) -> Access:
    """A person at the pages may read, in the project the pages show; writing takes a key.

    A cookie is sent by other sites' links, too: those requests say so and are refused.
    """
    is_own = request.headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")
    if request.method != "GET" or not is_own or not request.user.is_authenticated:
        raise _unauthorized(_KEY_NEEDED)
    chosen = request.session.get(_SESSION_PROJECT)
    project = find_project(slug=chosen) if isinstance(chosen, str) else None
    return Access(project=project or default_project(), name=request.user.get_username())


def _unauthorized(detail: str, *, error: str = "") -> Problem:
    challenge = 'Bearer realm="HelmDash"'
    return Problem(
        code=Code.UNAUTHORIZED,
        detail=detail,
        headers={"WWW-Authenticate": f'{challenge}, error="{error}"' if error else challenge},
    )
