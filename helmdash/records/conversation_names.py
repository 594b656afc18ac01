"""Conversations by what they are called, or were before their agent's id was known."""

from __future__ import annotations

from django.db.models import QuerySet

from helmdash.core.calls.joining import aliases_of
from helmdash.records.call_names import find_conversations
from helmdash.records.models import Conversation


def named(
    project_id: int, name: str, *, among: QuerySet[Conversation] | None = None
) -> Conversation | None:
    """The conversation of this name, or that it is a further name of (core.calls.joining); None:
    there is none. One query, two more where none is called so. among: of these."""
    rows = Conversation.objects.all() if among is None else among
    rows = rows.filter(project_id=project_id)
    return rows.filter(name=name).first() or _renamed(rows, project_id, name)


def present_name(project_id: int, former: str) -> str | None:
    """What the conversation is called now that no longer has this name; None: the name leads to
    none. One query, two where there may be one."""
    found = _renamed(Conversation.objects.filter(project_id=project_id), project_id, former)
    return None if found is None else found.name


def _renamed(rows: QuerySet[Conversation], project_id: int, former: str) -> Conversation | None:
    ids = find_conversations(project_id, aliases_of(former)) if former else {}
    return rows.filter(pk__in=ids.values()).first() if ids else None
