"""Whether somebody who began something may still do it, in what takes minutes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import assert_never

from django.contrib.auth import get_user_model
from django.db.models import Q

from helmdash.core.access.permissions import (
    Actor,
    KeyHolder,
    Person,
    Right,
    Shell,
    require,
)
from helmdash.queries.access.access import person_of
from helmdash.records.models import ApiKey


def require_still(actor: Actor, right: Right, *, project_id: int, now: datetime) -> None:
    """Raises Forbidden where the actor, as they are known now, does not hold the right.

    A key is known by its project and name: one that took its place under the same name goes on
    with what it began. Two queries at most.
    """
    require(_as_of_now(actor, now), right, project_id=project_id)


def _as_of_now(actor: Actor, now: datetime) -> Actor:
    match actor:
        case Shell():
            return actor
        case KeyHolder():
            return replace(actor, scopes=_scopes(actor, now))
        case Person():
            user = get_user_model().objects.filter(username=actor.name).first()
            return Person(name=actor.name) if user is None else person_of(user)
        case _:
            assert_never(actor)


def _scopes(key: KeyHolder, now: datetime) -> frozenset[str]:
    """None of a key that was revoked or has expired."""
    rows = ApiKey.objects.filter(
        Q(expires_at__isnull=True) | Q(expires_at__gt=now),
        project_id=key.project_id,
        name=key.name,
        revoked_at__isnull=True,
    )
    return frozenset(rows.values_list("scopes", flat=True).first() or ())
