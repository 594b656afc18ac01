"""The story of a row, from its history rows: who changed what, when, from what to what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import models

# What no reader of a history wants to see as a change.
_NOISE = frozenset({"id", "created_at", "updated_at"})
_KINDS = {"+": "added", "~": "changed", "-": "deleted"}
NOBODY = "the API or the command line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field, in words, before and after."""

    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One history row as the admin shows it."""

    history_id: int
    name: str
    at: datetime
    who: str
    kind: str
    reason: str
    changes: tuple[Change, ...]


def edits(model: type[models.Model], records: Sequence[Any], older: Any | None) -> list[Edit]:
    """Describe history records, newest first; `older` is the one before the last of them, None
    where there is none."""
    names = related_names(model, [*records, *([older] if older else [])])
    pairs = zip(records, [*records[1:], older], strict=False)
    return [_edit(model, record, before, names) for record, before in pairs]


def describe(field: models.Field[Any, Any], value: Any, names: Mapping[Any, str]) -> str:
    """A value as a person reads it: the choice's words, yes or no, the related row's name."""
    if value is None or value == "":
        return "(empty)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(field, models.ForeignKey):
        return names.get((field.name, value), f"#{value} (deleted)")
    # The short value of a choice: its words are on the form.
    return str(value)


def related_names(model: type[models.Model], records: Sequence[Any]) -> dict[Any, str]:
    """Names of the rows that foreign keys of the records point to. One query for each key."""
    names: dict[Any, str] = {}
    for field in _told_fields(model):
        if isinstance(field, models.ForeignKey):
            ids = {getattr(record, field.attname) for record in records} - {None}
            related: Any = field.related_model
            for row in related.objects.filter(pk__in=ids) if ids else ():
                names[(field.name, row.pk)] = str(row)
    return names


def _edit(
    model: type[models.Model], record: Any, before: Any | None, names: Mapping[Any, str]
) -> Edit:
    kind = _KINDS.get(record.history_type, record.history_type)
    return Edit(
        history_id=record.history_id,
        name=str(record.instance),
        at=record.history_date,
        who=str(record.history_user) if record.history_user else NOBODY,
        kind=kind,
        reason=record.history_change_reason or "",
        changes=_changes(model, before, record, names) if kind == "changed" and before else (),
    )


def _changes(
    model: type[models.Model], before: Any, after: Any, names: Mapping[Any, str]
) -> tuple[Change, ...]:
    found = []
    for field in _told_fields(model):
        old, new = getattr(before, field.attname), getattr(after, field.attname)
        if old != new:
            words = (describe(field, old, names), describe(field, new, names))
            found.append(Change(field=str(field.verbose_name), before=words[0], after=words[1]))
    return tuple(found)


def _told_fields(model: type[models.Model]) -> list[models.Field[Any, Any]]:
    return [field for field in model._meta.concrete_fields if field.name not in _NOISE]
