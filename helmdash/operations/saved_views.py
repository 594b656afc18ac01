"""Saving a list as somebody wants to see it again: for oneself, or for everybody in the project."""

from __future__ import annotations

from typing import Final

from django.db.models import Q

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.operations.database.transactions import write
from helmdash.records import audit
from helmdash.records.models import FirstView, SavedView
from helmdash.records.models.saved_views import VIEW_ADDRESS_CHARS, VIEW_LISTS, VIEW_NAME_CHARS
from helmdash.records.statements.locking import lock_project

# Of one list: more are no tabs any more.
MOST_VIEWS: Final = 50


class ViewError(Exception):
    """A view cannot be saved so; `field` is the one to blame, the message says why and what
    helps."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def save_view(
    *,
    actor: Actor,
    user_id: int,
    project_id: int,
    noun: str,
    name: str,
    address: str,
    is_shared: bool,
) -> int:
    """Keep what the address of a list says by a name; one of this name is replaced. Gives its id.

    is_shared: for everybody in the project, which takes the right to share. Raises Forbidden,
    ViewError.
    """
    require(actor, Right.SHARE_VIEWS if is_shared else Right.READ, project_id=project_id)
    if noun not in VIEW_LISTS:
        raise ViewError("list", f"is not one of: {', '.join(VIEW_LISTS)}")
    name = _name(name)
    if len(address) > VIEW_ADDRESS_CHARS:
        raise ViewError("address", f"is longer than {VIEW_ADDRESS_CHARS} characters")
    whose = None if is_shared else user_id

    def work() -> int:
        lock_project(project_id)
        rows = SavedView.objects.filter(_owned(whose), project_id=project_id, noun=noun)
        row = rows.filter(name=name).first()
        before = row.address if row else None
        if row is None and rows.count() >= MOST_VIEWS:
            raise ViewError("name", f"this list has {MOST_VIEWS} views: delete one first")
        if row is None:
            row = SavedView(project_id=project_id, noun=noun, user_id=whose, name=name)
        row.address, row.by = address, str(actor)[:150]
        row.save()
        if before != address:
            action = "added" if before is None else "changed"
            # Of one's own the log says that it was saved: what somebody looks for is their matter.
            _note(actor, row, action, (("address", before, address),) if is_shared else ())
        return row.pk

    return write(work)


def rename_view(
    *, actor: Actor, user_id: int, project_id: int, noun: str, view_id: int, name: str
) -> None:
    """Give a view of a list another name. Raises Forbidden, ViewError."""
    name = _name(name)

    def work() -> None:
        row = _changeable(actor, user_id, project_id, noun, view_id)
        alike = SavedView.objects.filter(
            _owned(row.user_id), project_id=project_id, noun=row.noun, name=name
        )
        if alike.exclude(pk=row.pk).exists():
            raise ViewError("name", f"another view of this list is called {name!r}")
        before, row.name = row.name, name
        row.save(update_fields=["name"])
        if before != name:
            _note(actor, row, "changed", (("name", before, name),))

    write(work)


def delete_view(*, actor: Actor, user_id: int, project_id: int, noun: str, view_id: int) -> None:
    """Forget a view of a list; for whom it opened with that view, it opens with all of it again.
    Raises Forbidden, ViewError."""

    def work() -> None:
        row = _changeable(actor, user_id, project_id, noun, view_id)
        _note(actor, row, "deleted", ())
        row.delete()

    write(work)


def set_first_view(
    *, actor: Actor, user_id: int, project_id: int, noun: str, view_id: int | None
) -> None:
    """Say what a list opens with for somebody; view_id None: with all of it. Raises Forbidden,
    ViewError."""
    require(actor, Right.READ, project_id=project_id)

    def work() -> None:
        FirstView.objects.filter(user_id=user_id, project_id=project_id, noun=noun).delete()
        if view_id is not None:
            row = _seen(user_id, project_id, noun, view_id)
            FirstView.objects.create(user_id=user_id, project_id=project_id, noun=noun, view=row)

    write(work)


def _owned(user_id: int | None) -> Q:
    return Q(user__isnull=True) if user_id is None else Q(user_id=user_id)


def _name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > VIEW_NAME_CHARS or not name.isprintable():
        raise ViewError("name", f"write 1 to {VIEW_NAME_CHARS} characters on one line")
    return name


def _seen(user_id: int, project_id: int, noun: str, view_id: int) -> SavedView:
    """A view that somebody sees of a list, kept from others while it is changed."""
    rows = SavedView.objects.select_for_update().filter(project_id=project_id, noun=noun)
    row = rows.filter(Q(user_id=user_id) | Q(user__isnull=True), pk=view_id).first()
    if row is None:
        raise ViewError("view", "is not there any more")
    return row


def _changeable(actor: Actor, user_id: int, project_id: int, noun: str, view_id: int) -> SavedView:
    require(actor, Right.READ, project_id=project_id)
    row = _seen(user_id, project_id, noun, view_id)
    if row.user_id is None:
        require(actor, Right.SHARE_VIEWS, project_id=project_id)
    return row


def _note(
    actor: Actor, row: SavedView, action: str, changes: tuple[tuple[str, object, object], ...]
) -> None:
    audit.note(
        actor=actor,
        project_id=row.project_id,
        kind="view",
        action=action,
        subject=f"{row.name} ({row.noun}, {'shared' if row.user_id is None else 'own'})",
        changes=changes,
    )
