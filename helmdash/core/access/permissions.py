"""Who may do what: one table for keys, one for people, and the one function that decides.

A key acts for its project, by its scopes; a person in the projects of their memberships, by their
role; the shell is whoever can run commands where HelmDash runs, and may do everything. What
concerns every project (global budgets, aliases and upstreams, projects, accounts) has no project of
its own: `project_id` None stands for it.

Errors: Forbidden is the only one; each face tells it in its own shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never


class Scope(StrEnum):
    """What an API key may do. None implies another, but admin implies all."""

    RECORD = "record"
    READ = "read"
    FIT = "fit"
    PLAN = "plan"
    BUDGETS = "budgets"
    ADMIN = "admin"


class MemberRole(StrEnum):
    """What a member of a project may do; each role may do what those before it may."""

    VIEWER = "viewer"
    EDITOR = "editor"
    OWNER = "owner"


class Right(StrEnum):
    """Everything that may be done in a project, or to all of them."""

    READ = "read"  # calls, conversations, plans, fits, catalogs, and how the project is set up
    READ_BUDGETS = "read_budgets"
    RECORD = "record"  # report calls, send them through the gateway
    CARE = "care"  # step, clear and remind a conversation
    GIVE_FEEDBACK = "give_feedback"  # whether a plan was followed
    TRIAGE = "triage"  # resolve, mute, snooze, note: what people say about trouble
    SHARE_VIEWS = "share_views"  # saved views that everybody in the project has
    FIT = "fit"
    PLAN = "plan"  # plan and route: it spends the provider's money
    CHANGE_BUDGETS = "change_budgets"
    DECIDE_SUGGESTIONS = "decide_suggestions"  # accept, dismiss or try them, and take that back
    CHANGE_CATALOGS = "change_catalogs"
    CHANGE_SETTINGS = "change_settings"  # gateway policy, care settings, texts, retention
    MANAGE_UPSTREAMS = "manage_upstreams"  # also to test one
    MANAGE_KEYS = "manage_keys"
    MANAGE_MEMBERS = "manage_members"
    READ_AUDIT = "read_audit"  # who changed what, and from which address
    ERASE = "erase"  # records, for good
    MANAGE_DEMO = "manage_demo"  # load and remove demo data; asked of the default project
    ADMINISTER = "administer"  # what concerns every project


_ORDER = tuple(MemberRole)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """A program with an API key."""

    name: str
    scopes: frozenset[str]
    project_id: int
    is_of_default: bool

    def __str__(self) -> str:
        """As histories name it."""
        return f"API key {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody signed in; `roles` by project."""

    name: str
    is_superuser: bool = False
    roles: Mapping[int, MemberRole] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """Whoever runs commands where HelmDash runs: the database and the keys are theirs anyway."""

    def __str__(self) -> str:
        return "the command line"


Actor = KeyHolder | Person | Shell
SHELL = Shell()


class Forbidden(Exception):
    """The actor may not do this. The message says what it takes; `scope` is that of a key.

    project_id: None where the right concerns every project.
    """

    def __init__(
        self, message: str, *, right: Right, project_id: int | None, scope: Scope | None = None
    ) -> None:
        super().__init__(message)
        self.right = right
        self.project_id = project_id
        self.scope = scope


def may(actor: Actor, right: Right, *, project_id: int | None) -> bool:
    """Whether the actor holds the right there. project_id None: in what concerns every project."""
    match actor:
        case Shell():
            return True
        case KeyHolder():
            return _key_may(actor, right, project_id)
        case Person():
            return _person_may(actor, right, project_id)
        case _:
            assert_never(actor)


def require(actor: Actor, right: Right, *, project_id: int | None) -> None:
    """Raises Forbidden unless `may` says yes; project_id None: for what concerns every project."""
    if not may(actor, right, project_id=project_id):
        raise _forbidden(actor, right, project_id)


def grantable(actor: Actor, *, project_id: int, is_default: bool) -> tuple[Scope, ...]:
    """Scopes that the actor may give to a key of the project: those of which it has every right.

    So the owner of the default project gives all but admin, which would reach every project.
    """
    if not may(actor, Right.MANAGE_KEYS, project_id=project_id):
        return ()
    return tuple(scope for scope in Scope if _has_all_of(actor, scope, project_id, is_default))


def require_grantable(
    actor: Actor, scopes: frozenset[str], *, project_id: int, is_default: bool
) -> None:
    """Raises Forbidden when the actor would give a scope that it does not hold."""
    require(actor, Right.MANAGE_KEYS, project_id=project_id)
    beyond = scopes - set(grantable(actor, project_id=project_id, is_default=is_default))
    if beyond:
        raise Forbidden(
            f"Nobody gives a scope that they do not hold: {', '.join(sorted(beyond))}.",
            right=Right.MANAGE_KEYS,
            project_id=project_id,
            scope=Scope.ADMIN,
        )


def require_role(actor: Actor, role: MemberRole, *, project_id: int) -> None:
    """Raises Forbidden when the actor would give a role with a right that it does not hold."""
    require(actor, Right.MANAGE_MEMBERS, project_id=project_id)
    for right in Right:
        least = least_role(right)
        if least is not None and _ORDER.index(role) >= _ORDER.index(least):
            require(actor, right, project_id=project_id)


def readable(actor: Actor) -> frozenset[int] | None:
    """The projects that the actor may read; None: every one."""
    match actor:
        case Shell():
            return None
        case KeyHolder():
            is_allowed = _key_may(actor, Right.READ, actor.project_id)
            return frozenset({actor.project_id} if is_allowed else ())
        case Person():
            return None if actor.is_superuser else frozenset(actor.roles)
        case _:
            assert_never(actor)


def scope_of(right: Right) -> Scope | None:
    """The scope that a key needs in its own project; None: any valid key will do."""
    match right:
        case Right.READ_BUDGETS:
            return None
        case Right.READ:
            return Scope.READ
        case Right.RECORD | Right.CARE | Right.GIVE_FEEDBACK | Right.TRIAGE:
            return Scope.RECORD
        case Right.FIT:
            return Scope.FIT
        case Right.PLAN:
            return Scope.PLAN
        case Right.CHANGE_BUDGETS | Right.DECIDE_SUGGESTIONS:
            return Scope.BUDGETS
        case (
            Right.SHARE_VIEWS
            | Right.CHANGE_CATALOGS
            | Right.CHANGE_SETTINGS
            | Right.MANAGE_UPSTREAMS
            | Right.MANAGE_KEYS
            | Right.MANAGE_MEMBERS
            | Right.READ_AUDIT
            | Right.ERASE
            | Right.MANAGE_DEMO
            | Right.ADMINISTER
        ):
            return Scope.ADMIN
        case _:
            assert_never(right)


def least_role(right: Right) -> MemberRole | None:
    """The first of viewer, editor, owner that has the right. None: only superusers have it."""
    match right:
        case Right.READ | Right.READ_BUDGETS:
            return MemberRole.VIEWER
        case (
            Right.RECORD
            | Right.CARE
            | Right.GIVE_FEEDBACK
            | Right.TRIAGE
            | Right.SHARE_VIEWS
            | Right.FIT
            | Right.PLAN
            | Right.CHANGE_BUDGETS
        ):
            return MemberRole.EDITOR
        case (
            Right.DECIDE_SUGGESTIONS
            | Right.CHANGE_CATALOGS
            | Right.CHANGE_SETTINGS
            | Right.MANAGE_UPSTREAMS
            | Right.MANAGE_KEYS
            | Right.MANAGE_MEMBERS
            | Right.READ_AUDIT
            | Right.ERASE
            | Right.MANAGE_DEMO
        ):
            return MemberRole.OWNER
        case Right.ADMINISTER:
            return None
        case _:
            assert_never(right)


def _key_may(key: KeyHolder, right: Right, project_id: int | None) -> bool:
    if project_id is None:
        return key.is_of_default and Scope.ADMIN in key.scopes
    if project_id != key.project_id or right is Right.ADMINISTER:
        return False
    needed = scope_of(right)
    return needed is None or needed in key.scopes or Scope.ADMIN in key.scopes


def _person_may(person: Person, right: Right, project_id: int | None) -> bool:
    if person.is_superuser:
        return True
    needed = least_role(right)
    role = person.roles.get(project_id) if project_id is not None else None
    if needed is None or role is None:
        return False
    return _ORDER.index(role) >= _ORDER.index(needed)


def _has_all_of(actor: Actor, scope: Scope, project_id: int, is_default: bool) -> bool:
    """Whether a key of this scope could do nothing that the actor cannot do."""
    if scope is Scope.ADMIN and is_default and not may(actor, Right.ADMINISTER, project_id=None):
        return False
    return all(
        may(actor, right, project_id=project_id)
        for right in Right
        if right is not Right.ADMINISTER
        if scope in (Scope.ADMIN, scope_of(right))
    )


def _forbidden(actor: Actor, right: Right, project_id: int | None) -> Forbidden:
    words = right.value.replace("_", " ")
    if isinstance(actor, KeyHolder):
        scope = Scope.ADMIN if project_id is None else scope_of(right)
        if project_id is None:
            said = (
                f"The key {actor.name} may not do this: what holds for every project takes a key "
                "of the default project with the scope admin."
            )
        elif project_id != actor.project_id:
            said = f"The key {actor.name} belongs to another project."
        else:
            said = f"The key {actor.name} lacks the scope {scope}."
        return Forbidden(said, right=right, project_id=project_id, scope=scope)
    role = least_role(right)
    if project_id is None or role is None:
        said = f"Only a superuser may do this ({words}): it concerns every project."
    else:
        said = f"This takes the role {role} in the project ({words}). Ask one of its owners for it."
    return Forbidden(said, right=right, project_id=project_id)
