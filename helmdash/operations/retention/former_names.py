"""What a sub-agent's conversation was called before its agent's id was known.

Of that name a call keeps a hash alone, by which it leads there (core.calls.joining). So it is
looked for where something is kept by a name: alerts and their messages, saved views, the audit log,
and what was asked for a conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from urllib.parse import unquote_plus

import orjson
from django.db.models import Model

from helmdash.core.calls.joining import BY_KIND, LOGGED_BY_KIND, alias_of
from helmdash.operations.alerts.delivering import message_of
from helmdash.records.call_names import find_conversations
from helmdash.records.models import (
    Alert,
    AlertMessage,
    AuditEntry,
    Conversation,
    Fit,
    PendingPrompt,
    PlanRecord,
    SavedView,
)
from helmdash.records.querysets import starts_with

_NAMED_IN: tuple[tuple[type[Model], str], ...] = (
    (Alert, "subject"),
    (Fit, "conversation"),
    (PlanRecord, "conversation"),
    (PendingPrompt, "conversation_name"),
)


def former_names(project_id: int, name: str) -> list[str]:
    """The names that lead to the conversation of this name, that no other one has by now, and that
    something is kept by."""
    row = Conversation.objects.filter(project_id=project_id, name=name).first()
    session = name.rpartition(":")[0]
    if row is None or not session:
        return []
    aliases = {
        alias_of(LOGGED_BY_KIND, each): each
        for each in _mentioned(project_id, f"{session}{BY_KIND}")
        if each != name
    }
    leading = find_conversations(project_id, aliases)
    found = {aliases[alias] for alias, number in leading.items() if number == row.pk}
    others = Conversation.objects.filter(project_id=project_id, name__in=found)
    return sorted(found - {*others.values_list("name", flat=True)})


def _mentioned(project_id: int, beginning: str) -> set[str]:
    """The names that begin so, wherever something is kept by one."""
    stored = (
        model._base_manager.filter(starts_with(field, beginning), project_id=project_id)
        .values_list(field, flat=True)
        .distinct()
        for model, field in _NAMED_IN
    )
    log = AuditEntry.objects.filter(
        starts_with("subject", beginning), project_id=project_id, kind="conversation"
    )
    return {
        *chain.from_iterable(stored),
        *log.values_list("subject", flat=True),
        *(each for each in _told(project_id, beginning) if each.startswith(beginning)),
        *_viewed(project_id, beginning),
    }


def _told(project_id: int, beginning: str) -> Iterator[str]:
    """The subjects of messages that say it; of rules that are gone by now, too."""
    spelt = orjson.dumps(beginning).decode()[:-1]
    for row in AlertMessage.objects.filter(project_id=project_id, body__contains=spelt):
        yield from (each.subject for each in message_of(row).entries)


def _viewed(project_id: int, beginning: str) -> Iterator[str]:
    """What views ask for; a name among other terms ends where the next one begins."""
    rows = SavedView.objects.filter(project_id=project_id)
    for address in rows.values_list("address", flat=True):
        yield from re.findall(rf'{re.escape(beginning)}[^\s,"&]*', unquote_plus(address))
