"""Who is calling: an API key, or, for reading only, somebody signed in to the pages.

Scopes and roles: core.access.permissions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from django.http import HttpRequest

from helmdash.api.problems import Code, Problem, problem_of_fault
from helmdash.core.access.client_address import counted_as
from helmdash.core.access.permissions import Actor, Forbidden, Right
from helmdash.doors.asgi import headers_of
from helmdash.doors.callers.directory import KeyContext
from helmdash.doors.callers.keys import look_up, presented_keys
from helmdash.doors.faults import Fault, NoKey
from helmdash.doors.front import KEY_CONTEXT_KEY
from helmdash.doors.limits import key_limits
from helmdash.queries.access.access import Caller, ProjectInfo, person_of, projects_of

# The pages remember the chosen project under this name (helmdash.pages is a sibling: not imported).
_SESSION_PROJECT = "project"
_NOT_A_MEMBER = "You are a member of no project. An owner or an administrator can add you."


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The project a request acts on, who acts, and the name that is recorded as its caller."""

    project: ProjectInfo
    name: str
    actor: Actor
    key_id: int | None = None
    """None: a person who is signed in to the pages."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Authentication of one route: a key with the scope; None is any valid key."""

    scope: str | None

    def __call__(self, request: HttpRequest) -> Access:
        """Give the access or raise the Problem (401, 403)."""
        caller = _caller_of(request)
        if caller is None:
            return _signed_in(request)
        if self.scope is not None and not caller.may(self.scope):
            raise Problem(
                code=Code.FORBIDDEN,
                detail=f"The key {caller.name} lacks the scope {self.scope}.",
                headers={
                    "WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{self.scope}"'
                },
            )
        return Access(
            project=caller.project, name=caller.name, actor=caller.actor, key_id=caller.key_id
        )


def access_of(request: HttpRequest) -> Access:
    """What `Needs` found out for this request."""
    return cast("Access", request.auth)  # type: ignore[attr-defined]  # set by ninja


def _caller_of(request: HttpRequest) -> Caller | None:
    """Whom the door has let in, or (without a door in front) whose key it is; None without a key.

    Raises Problem (401, 429).
    """
    scope = getattr(request, "scope", None) or {}
    key_context = scope.get(KEY_CONTEXT_KEY)
    if isinstance(key_context, KeyContext):
        return key_context.caller
    keys = keys_of(request)
    try:
        address = counted_as(request.META.get("REMOTE_ADDR", ""))
        return look_up(keys, address=address) if keys else None
    except Fault as fault:
        raise problem_of_fault(fault) from None


def keys_of(request: HttpRequest) -> tuple[str, ...]:
    """The keys that came along with a request (helmdash.doors.callers.keys)."""
    scope = getattr(request, "scope", None)
    if scope is not None:
        return presented_keys(headers_of(scope))
    return presented_keys(
        {
            name.lower().encode("latin-1"): value.encode("latin-1", "replace")
            for name, value in request.headers.items()
        }
    )


def _signed_in(request: HttpRequest) -> Access:
    """A person at the pages may read, in the project the pages show; writing takes a key.

    A cookie is sent by other sites' links, too: those requests say so and are refused.
    """
    is_own = request.headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")
    if request.method != "GET" or not is_own or not request.user.is_authenticated:
        raise problem_of_fault(NoKey())
    try:
        key_limits().take(f"user {request.user.pk}")
    except Fault as fault:
        raise problem_of_fault(fault) from None
    person = person_of(request.user)
    readable = projects_of(actor=person)
    if not readable:
        raise forbidden_problem(Forbidden(_NOT_A_MEMBER, right=Right.READ, project_id=None))
    chosen = request.session.get(_SESSION_PROJECT)
    project = next((each for each in readable if each.slug == chosen), readable[0])
    return Access(project=project, name=person.name, actor=person)


def forbidden_problem(error: Forbidden) -> Problem:
    """403, with the scope that a key would need."""
    challenge = f'Bearer error="insufficient_scope", scope="{error.scope}"'
    headers = {"WWW-Authenticate": challenge} if error.scope else {}
    return Problem(code=Code.FORBIDDEN, detail=str(error), headers=headers)
