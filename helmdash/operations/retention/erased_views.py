"""Erasing the name of a conversation from saved views, and from what the audit log says of them."""

from __future__ import annotations

import re
from functools import partial
from typing import Final
from urllib.parse import parse_qsl

from helmdash.core.text.query_terms import quoted
from helmdash.operations.database.transactions import write
from helmdash.records.models import AuditEntry, SavedView

# What an address has a whole id of a conversation in; `query` also among other terms.
_NAMING: Final = frozenset({"conversation", "parent", "q", "query"})


def forget_in_views(*, project_id: int, conversation: str, nameless: str) -> None:
    """Delete the views of a project that ask for a conversation by its name, anybody's; in the
    audit log `nameless` stands for their addresses from then on."""
    write(partial(_forget, project_id, conversation, nameless))


def _forget(project_id: int, conversation: str, nameless: str) -> None:
    views = SavedView.objects.filter(project_id=project_id)
    naming = [
        pk for pk, address in views.values_list("pk", "address") if _names(address, conversation)
    ]
    views.filter(pk__in=naming).delete()
    told = AuditEntry.objects.filter(project_id=project_id, kind="view").exclude(changes=[])
    for entry in told.only("changes").iterator():
        kept = [
            [field, *(nameless if _names(each, conversation) else each for each in values)]
            for field, *values in entry.changes
        ]
        if kept != entry.changes:
            AuditEntry.objects.filter(pk=entry.pk).update(changes=kept)


def _names(address: object, conversation: str) -> bool:
    """Whether what stands behind the question mark of a list asks for this very conversation."""
    if not isinstance(address, str):
        return False
    asked = [(name, value) for name, value in parse_qsl(address) if name in _NAMING]
    spelt = "|".join(map(re.escape, (conversation, quoted(conversation))))
    among_terms = rf"(?:^|\s|(?i:conversation|parent):(?:\S*,)?)(?:{spelt})(?=[\s,]|$)"
    return any(
        value == conversation or (name == "query" and re.search(among_terms, value) is not None)
        for name, value in asked
    )
