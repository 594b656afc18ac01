"""Who is calling: API keys and projects, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from helmdash.core.access.permissions import Actor, KeyHolder, MemberRole, Person, Scope, readable
from helmdash.records.access import rights
from helmdash.records.access.who_asks import all_projects, find_key
from helmdash.records.models import ApiKey, BudgetMode, Membership, Project
from helmdash.records.models.access import hash_key

SCOPES = tuple(scope.value for scope in Scope)
BUDGET_MODES = tuple(BudgetMode.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectInfo:
    """One project, as the pages and the recorder need it."""

    id: int
    slug: str
    name: str
    is_default: bool
    is_demo: bool
    payload: str
    retention_days: int | None
    budget_mode: str = "observe"
    default_upstream: str = ""
    remediation: bool = False
    text_days: int | None = None
    redaction_patterns: tuple[str, ...] = ()

    def kept_since(self, now: datetime) -> datetime | None:
        """Calls that began before this are not kept; None: all are."""
        return None if self.retention_days is None else now - timedelta(days=self.retention_days)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The owner of a presented API key, and what it may do."""

    key_id: int
    name: str
    scopes: frozenset[str]
    project: ProjectInfo
    latest_used_at: datetime | None
    expires_at: datetime | None = None
    """Null: never. Whoever lets a caller in looks at it (helmdash.doors.limits)."""

    def may(self, scope: str) -> bool:
        """True when the key carries the scope, or admin, which implies all."""
        return scope in self.scopes or Scope.ADMIN.value in self.scopes

    @property
    def actor(self) -> KeyHolder:
        """The key as core.access.permissions judges it."""
        return KeyHolder(
            name=self.name,
            scopes=self.scopes,
            project_id=self.project.id,
            is_of_default=self.project.is_default,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A person and the role they have in one project; since: as a member. signed_in_at None: they
    never were."""

    user: str
    project: str
    role: MemberRole
    since: datetime
    signed_in_at: datetime | None
    is_active: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyInfo:
    """One key as the lists show it: never the key itself."""

    name: str
    prefix: str
    project: str
    scopes: tuple[str, ...]
    created_at: datetime
    latest_used_at: datetime | None
    revoked_at: datetime | None
    expires_at: datetime | None = None

    def state(self, now: datetime) -> str:
        """One of active, expired, revoked; revoked comes before expired."""
        if self.revoked_at is not None:
            return "revoked"
        is_over = self.expires_at is not None and now >= self.expires_at
        return "expired" if is_over else "active"


def find_caller(*, key: str) -> Caller | None:
    """The caller a key belongs to, also where it has expired; None when it is unknown or revoked.

    One query.
    """
    found = find_key(hash_key(key))
    if found is None:
        return None
    return Caller(
        key_id=found.id,
        name=found.name,
        scopes=frozenset(found.scopes),
        project=ProjectInfo(**found.project),
        latest_used_at=found.latest_used_at,
        expires_at=found.expires_at,
    )


def project_info(project: Project) -> ProjectInfo:
    """The value behind a project row."""
    return ProjectInfo(
        id=project.pk,
        slug=project.slug,
        name=project.name,
        is_default=project.is_default,
        is_demo=project.is_demo,
        payload=project.payload,
        retention_days=project.retention_days,
        budget_mode=project.budget_mode,
        default_upstream=project.default_upstream,
        remediation=project.remediation,
        text_days=project.text_days,
        redaction_patterns=tuple(project.redaction_patterns or ()),
    )


def person_of(user: AbstractBaseUser | AnonymousUser) -> Person:
    """Who a user of the pages is: their role in each project. One query, none for superusers.

    Somebody without any right, for a user that is not signed in or not active.
    """
    return rights.person_of(user)


def projects() -> tuple[ProjectInfo, ...]:
    """Every project, the default first, demo data last."""
    return tuple(ProjectInfo(**row) for row in all_projects())


def projects_of(*, actor: Actor) -> tuple[ProjectInfo, ...]:
    """The projects that the actor may read, the default first, demo data last."""
    ids = readable(actor)
    return tuple(each for each in projects() if ids is None or each.id in ids)


def members(*, project: str | None = None) -> tuple[Member, ...]:
    """Memberships by project and name: those of the project with this slug; None: of all."""
    rows = Membership.objects.select_related("project", "user")
    if project is not None:
        rows = rows.filter(project__slug=project)
    return tuple(
        Member(
            user=row.user.get_username(),
            project=row.project.slug,
            role=MemberRole(row.role),
            since=row.created_at,
            signed_in_at=row.user.last_login,
            is_active=row.user.is_active,
        )
        for row in rows.order_by("project__slug", "user__username")
    )


def superusers() -> tuple[str, ...]:
    """Names of the active accounts that may do everything, in every project."""
    rows = get_user_model().objects.filter(is_superuser=True, is_active=True)
    return tuple(rows.order_by("username").values_list("username", flat=True))


def default_project() -> ProjectInfo:
    """The project new keys belong to. Raises Project.DoesNotExist before `manage.py up` ran."""
    return project_info(Project.objects.get(is_default=True))


def find_project(*, slug: str) -> ProjectInfo | None:
    """The project with this slug; None if it does not exist."""
    row = Project.objects.filter(slug=slug).first()
    return project_info(row) if row else None


def api_keys(*, project_id: int | None = None) -> tuple[ApiKeyInfo, ...]:
    """Keys of one project, or of all (project_id None), newest first, revoked ones included."""
    rows = ApiKey.objects.select_related("project").order_by("-created_at", "-id")
    if project_id is not None:
        rows = rows.filter(project_id=project_id)
    return tuple(
        ApiKeyInfo(
            name=row.name,
            prefix=row.prefix,
            project=row.project.slug,
            scopes=tuple(row.scopes),
            created_at=row.created_at,
            latest_used_at=row.latest_used_at,
            revoked_at=row.revoked_at,
            expires_at=row.expires_at,
        )
        for row in rows
    )
