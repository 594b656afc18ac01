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
    found = rows.filter(name=name).first()
    if found is None and name:
        ids = find_conversations(project_id, aliases_of(name))
        found = rows.filter(pk__in=ids.values()).first() if ids else None
    return found
