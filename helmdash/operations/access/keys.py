"""API keys of programs, the first of them included."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from helmdash.core.access.permissions import (
    SHELL,
    Actor,
    Right,
    Scope,
    may,
    require,
    require_grantable,
)
from helmdash.operations.database.transactions import write
from helmdash.queries.access.access import SCOPES, Caller
from helmdash.records.audit import note_row, values_of
from helmdash.records.models import ApiKey, Project
from helmdash.records.models.access import hash_key, key_prefix

# Everything but `admin`: what packs and people at the terminal need on the first day.
DEFAULT_SCOPES = tuple(scope for scope in SCOPES if scope != Scope.ADMIN.value)
# A key's last use is written at most this often, so that reads do not become writes.
_USE_PRECISION = timedelta(minutes=1)


class AccessError(Exception):
    """The request about a key or member cannot be carried out; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key that was just made: the only moment its secret exists outside its owner's hands."""

    name: str
    secret: str
    scopes: tuple[str, ...]


def create_key(
    *,
    actor: Actor,
    name: str,
    scopes: tuple[str, ...] = DEFAULT_SCOPES,
    project: str | None = None,
    secret: str | None = None,
    expires_at: datetime | None = None,
) -> NewKey:
    """Make a key for a project (the default one when none is named).

    `secret` is given only for the bootstrap key of the environment. `expires_at` None: never; from
    then on its requests get a 401 that says so. Raises AccessError on an
    unknown scope or project, a name in use, or a blank name, and Forbidden where the actor makes
    no keys or does not hold a scope itself.
    """
    name = name.strip()
    if not name:
        raise AccessError("name: a key needs a name")
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise AccessError(
            f"scopes: {', '.join(unknown) or 'none given'}; known scopes are {', '.join(SCOPES)}"
        )

    def work() -> str:
        owner = Project.objects.filter(**({"slug": project} if project else {"is_default": True}))
        row = owner.first()
        if row is None:
            raise AccessError(f"project: there is no project called {project or 'default'}")
        require_grantable(actor, frozenset(scopes), project_id=row.pk, is_default=row.is_default)
        # Of this project: whether another one has a key of the name is nobody's business here.
        if ApiKey.objects.filter(project=row, name=name, revoked_at__isnull=True).exists():
            raise AccessError(f"name: an active key is called {name}; revoke it first")
        kept = [s for s in SCOPES if s in scopes]
        new = ApiKey(project=row, name=name, scopes=kept, expires_at=expires_at)
        key = new.issue(secret)
        if ApiKey.objects.filter(key_hash=new.key_hash).exists():
            raise AccessError("key: this key exists already")
        new.save(force_insert=True)
        note_row(actor=actor, row=new, before=None)
        return key

    # Anew where somebody made a key of this name meanwhile: it is found then.
    return NewKey(name=name, secret=write(work), scopes=tuple(scopes))


def prefix_of(*, secret: str) -> str:
    """As much of a key as may be shown."""
    return key_prefix(secret)


def revoke_key(*, actor: Actor, name: str, now: datetime, project: str | None = None) -> None:
    """End a key at once, of the project with this slug; None: of the only one that has such a key.

    Raises AccessError when no active key has the name, or only one of a project whose keys the
    actor may not even see, or keys of several projects have it and none is named; Forbidden when
    the actor sees it and may not end it.
    """
    with transaction.atomic():
        active = ApiKey.objects.select_for_update(of=("self",)).select_related("project")
        active = active.filter(name=name, revoked_at__isnull=True)
        if project is not None:
            active = active.filter(project__slug=project)
        seen = [key for key in active if may(actor, Right.READ, project_id=key.project_id)]
        if not seen:
            raise AccessError(f"name: no active key is called {name}")
        if len(seen) > 1:
            slugs = ", ".join(sorted(key.project.slug for key in seen))
            raise AccessError(f"project: keys called {name} are in {slugs}; say in which one")
        row = seen[0]
        require(actor, Right.MANAGE_KEYS, project_id=row.project_id)
        before = values_of(row)
        row.revoked_at = now
        row.save(update_fields=["revoked_at"])
        note_row(actor=actor, row=row, before=before)


def note_use(*, caller: Caller, now: datetime) -> None:
    """Remember when a key was last used, to the minute."""
    before = caller.latest_used_at
    if before is None or now - before >= _USE_PRECISION:
        ApiKey.objects.filter(pk=caller.key_id).update(latest_used_at=now)


def ensure_bootstrap_key(*, secret: str) -> NewKey | None:
    """The first key: the one of the environment, or a fresh one when no key exists at all.

    None when there is nothing to do. A key of the environment that was revoked stays revoked.
    """
    if secret:
        if ApiKey.objects.filter(key_hash=hash_key(secret)).exists():
            return None
        return create_key(actor=SHELL, name=_free_name("bootstrap"), secret=secret)
    if ApiKey.objects.exists():
        return None
    return create_key(actor=SHELL, name="bootstrap")


def _free_name(wanted: str) -> str:
    active = ApiKey.objects.filter(project__is_default=True, revoked_at__isnull=True)
    taken = set(active.values_list("name", flat=True))
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name
