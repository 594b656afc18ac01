"""Saved views of a project's lists: somebody's own, and those that everybody has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from helmdash.records.models import FirstView, SavedView
from helmdash.records.querysets import contains

# What a palette shows of them.
_MOST_FOUND: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedViewItem:
    """One view. address: what its list's address says. is_shared: the project's; is_first: the list
    opens with it for whoever asks. by: who saved it, None where that is not known."""

    id: int
    noun: str
    name: str
    address: str
    is_shared: bool
    is_first: bool
    by: str | None


def views_of(*, project_id: int, user_id: int, noun: str) -> tuple[SavedViewItem, ...]:
    """What somebody sees of a list's views, the project's first, by name. One query."""
    rows = _seen(project_id, user_id).filter(noun=noun)
    shared_first = F("user_id").asc(nulls_first=True)
    return tuple(map(_item, rows.order_by(shared_first, "name", "id")))


def first_view(*, project_id: int, user_id: int, noun: str) -> str | None:
    """The address that a list opens with for somebody; None: all of it. One query."""
    rows = FirstView.objects.filter(user_id=user_id, project_id=project_id, noun=noun)
    return rows.values_list("view__address", flat=True).first()


def find_views(*, project_id: int, user_id: int, text: str) -> tuple[SavedViewItem, ...]:
    """The views whose name has every word of a text; the first few. One query."""
    if "\x00" in text:
        # No name has one, and PostgreSQL refuses the question.
        return ()
    rows = _seen(project_id, user_id)
    for word in text.split():
        rows = rows.filter(contains("name", word))
    return tuple(map(_item, rows.order_by("noun", "name", "id")[:_MOST_FOUND]))


def _seen(project_id: int, user_id: int) -> QuerySet[SavedView]:
    rows = SavedView.objects.filter(project_id=project_id)
    mine = rows.filter(Q(user__isnull=True) | Q(user_id=user_id))
    first = FirstView.objects.filter(user_id=user_id, view=OuterRef("pk"))
    return mine.annotate(is_first=Exists(first))


def _item(row: SavedView) -> SavedViewItem:
    return SavedViewItem(
        id=row.pk,
        noun=row.noun,
        name=row.name,
        address=row.address,
        is_shared=row.user_id is None,
        is_first=vars(row)["is_first"],
        by=row.by,
    )
