"""Edits of budgets, from the history that every edit leaves: who, when, from what to what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from django.db.models import OuterRef, Q, QuerySet, Subquery

from helmdash.core.budgets.budgets import STORED_FIELDS
from helmdash.records.models import Budget
from helmdash.records.models.budgets import SHIPPED_REASON

# A week with more is looked at day by day.
MOST_EDITS: Final = 200


class EditKind(StrEnum):
    """What was done to a row."""

    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"


_KINDS: Final = {"+": EditKind.ADDED, "~": EditKind.CHANGED, "-": EditKind.DELETED}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldEdit:
    """One column, before and after, as stored; None: not set."""

    field: str
    before: object
    after: object


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetEdit:
    """One edit of a row.

    id: its number in the history. key "": the fallback's. project: whose row it is; None: every
    project's. by: who is known to have done it; "" where only `why` tells. changes: of a change
    alone. evidence: of the row, as this edit left it, where the edit wrote it. is_there: the row
    still is. until: when the row was edited next; None: this is its newest edit.
    """

    id: int
    budget_id: int
    key: str
    project: str | None
    project_id: int | None
    kind: EditKind
    at: datetime
    by: str
    why: str
    changes: tuple[FieldEdit, ...]
    evidence: str
    is_there: bool
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditList:
    """Edits, newest first; more: how many there are besides. shipped: rows that came with HelmDash
    in the same time, which are nobody's edits."""

    items: tuple[BudgetEdit, ...]
    more: int
    shipped: int


def edits_between(*, project_id: int, since: datetime, until: datetime) -> EditList:
    """The edits of rows that a project sees from `since` to before `until`. Six queries."""
    rows = _visible(project_id).filter(history_date__gte=since, history_date__lt=until)
    own = rows.exclude(history_change_reason=SHIPPED_REASON)
    found = _read(own.order_by("-history_date", "-history_id")[:MOST_EDITS])
    return EditList(
        items=found,
        more=own.count() - len(found) if len(found) == MOST_EDITS else 0,
        shipped=rows.filter(history_change_reason=SHIPPED_REASON).count(),
    )


def edits_by_number(*, project_id: int, numbers: Sequence[int]) -> tuple[BudgetEdit, ...]:
    """Single edits that the project sees, newest first; those that it does not are left out. Four
    queries."""
    rows = _visible(project_id).filter(history_id__in=numbers)
    return _read(rows.order_by("-history_date", "-history_id"))


def _visible(project_id: int) -> QuerySet[Any]:
    rows: QuerySet[Any] = Budget.history.filter(Q(project__isnull=True) | Q(project_id=project_id))
    return rows


def _read(rows: QuerySet[Any]) -> tuple[BudgetEdit, ...]:
    same = Budget.history.filter(id=OuterRef("id"))
    before = same.filter(history_id__lt=OuterRef("history_id")).order_by("-history_id")
    after = same.filter(history_id__gt=OuterRef("history_id")).order_by("history_id")
    records = list(
        rows.annotate(
            before_id=Subquery(before.values("history_id")[:1]),
            next_at=Subquery(after.values("history_date")[:1]),
        ).select_related("history_user", "project")
    )
    earlier = Budget.history.in_bulk({each.before_id for each in records if each.before_id})
    there = _there(each.id for each in records)
    return tuple(_edit(each, earlier.get(each.before_id), each.id in there) for each in records)


def _there(ids: Iterable[int]) -> frozenset[int]:
    return frozenset(Budget.objects.filter(pk__in=set(ids)).values_list("pk", flat=True))


def _edit(record: Any, before: Any | None, is_there: bool) -> BudgetEdit:
    kind = _KINDS[record.history_type]
    changes = changes_of(before, record) if kind is EditKind.CHANGED and before else ()
    wrote = any(each.field == "evidence" for each in changes) or kind is EditKind.ADDED
    return BudgetEdit(
        id=record.history_id,
        budget_id=record.id,
        key=record.key,
        project=record.project.name if record.project else None,
        project_id=record.project_id,
        kind=kind,
        at=record.history_date,
        by=record.history_user.get_username() if record.history_user else "",
        why=_why(record),
        changes=tuple(each for each in changes if each.field != "evidence"),
        evidence=record.evidence if wrote else "",
        is_there=is_there,
        until=record.next_at,
    )


def _why(record: Any) -> str:
    """The words of the history, but for those that only repeat who it was."""
    said = record.history_change_reason or ""
    user = record.history_user
    return "" if user is not None and said == user.get_username() else said


def changes_of(before: Any, after: Any) -> tuple[FieldEdit, ...]:
    """Which columns two records of one row have otherwise."""
    return tuple(
        FieldEdit(field=each.name, before=was, after=now)
        for each in STORED_FIELDS
        if (was := getattr(before, each.name)) != (now := getattr(after, each.name))
    )
