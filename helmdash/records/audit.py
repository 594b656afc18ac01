"""Writing the audit log: one entry for each change, in the transaction of the change.

Operations and the admin write here. Secrets are told as set or not, long texts are cut: the log
says what was done, histories and the rows themselves have the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db.models import ForeignKey, Model

from helmdash.core.access.origin import origin
from helmdash.core.access.permissions import Actor, Person
from helmdash.core.upstreams.addresses import shown_url
from helmdash.records.access.rights import project_of
from helmdash.records.models.audit import SUBJECT_CHARS, AuditEntry
from helmdash.records.statements.column_values import storable

Values = Mapping[str, object]
# What tables are called that have another name on pages.
_KINDS: Final = {
    "alertchannel": "alert channel",
    "alertrule": "alert rule",
    "apikey": "key",
    "budgetalias": "alias",
    "catalogrevision": "catalog",
    "membership": "member",
    "user": "account",
}
# What changes by itself, and what nobody would know a row by.
_UNTOLD: Final = frozenset(
    {
        "id",
        "created_at",
        "updated_at",
        "latest_used_at",
        "last_login",
        "date_joined",
        "body",
        "digest",
        # How far alerts have come by themselves.
        "uid",
        "cursor",
        "next_at",
        "problem",
        "failures",
        "retry_at",
        # And exports.
        "exported",
        "refused",
        "exported_at",
        "next_try_at",
        "latest_problem",
    }
)
_SECRETS: Final = frozenset({"key_hash", "password"})
_SEALED: Final = "_encrypted"  # how every column ends that holds something sealed
_MOST_CHARS: Final = 300
_EMPTY: Final = (None, "")


def values_of(row: Model) -> dict[str, object]:
    """What a row holds, for `note_row`: take it before the change."""
    return {
        field.name: getattr(row, field.name if isinstance(field, ForeignKey) else field.attname)
        for field in row._meta.concrete_fields
        if field.name not in _UNTOLD
    }


def note_row(
    *, actor: Actor | str, row: Model, before: Values | None, is_gone: bool = False
) -> None:
    """A row was added (before None), changed, or deleted. Nothing for a change of nothing."""
    after = {} if is_gone else values_of(row)
    changes = _changes(before or {}, after)
    if before is not None and not is_gone and not changes:
        return
    table = str(row._meta.model_name)
    note(
        actor=actor,
        project_id=project_of(row),
        kind=_KINDS.get(table, table),
        action="added" if before is None else "deleted" if is_gone else "changed",
        subject=str(row) or "(fallback)",
        changes=changes,
    )


def note_care(*, actor: Actor, project_id: int, conversation: str, action: str) -> None:
    """Somebody saw to a conversation. Only of people: what agents do to their own conversations
    is on the timeline of each, and would bury the rest."""
    if not isinstance(actor, Person):
        return
    note(
        actor=actor,
        project_id=project_id,
        kind="conversation",
        action=action,
        subject=conversation,
    )


def note(
    *,
    actor: Actor | str,
    project_id: int | None,
    kind: str,
    action: str,
    subject: str,
    changes: tuple[tuple[str, object, object], ...] = (),
) -> None:
    """Something was done. project_id None: it concerns every project. changes: (field, before,
    after)."""
    came = origin()
    AuditEntry.objects.create(
        project_id=project_id,
        by=storable(str(actor))[:150],
        way=came.way.value,
        address=came.address,
        kind=kind,
        action=action,
        subject=storable(subject)[:SUBJECT_CHARS],
        changes=storable(changes),
    )


def _changes(before: Values, after: Values) -> tuple[tuple[str, object, object], ...]:
    return tuple(
        (name, *_told(name, before.get(name), after.get(name)))
        for name in {**before, **after}
        if before.get(name) != after.get(name)
        and not (before.get(name) in _EMPTY and after.get(name) in _EMPTY)
    )


def _told(name: str, before: object, after: object) -> tuple[object, object]:
    if name in _SECRETS or name.endswith(_SEALED):
        again = "set anew" if before else "set"
        return "set" if before else None, again if after else None
    return _word(before), _word(after)


def _word(value: object) -> object:
    """A value as JSON has it and a reader knows it."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else shown_url(str(value))
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
