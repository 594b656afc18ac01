"""Texts of the user that no reply has answered yet: a fresh start carries them over, never changed.

They are stored sealed, and only until they are answered, whatever the project keeps of its calls.
"""

from __future__ import annotations

import json
from datetime import datetime

from django.db.models import QuerySet

from helmdash.core.calls.finish import FinishReason
from helmdash.records.access.secrets import seal, unseal
from helmdash.records.models import Conversation, PendingPrompt
from helmdash.records.querysets import calls_of

# A caller that is further ahead of its reports than this numbers its generations in its own way.
_MOST_UNREPORTED = 8


def keep(
    *,
    project_id: int,
    conversation: str,
    generation: int,
    recorded: int,
    text: str,
    now: datetime,
) -> None:
    """Store the text that comes with a generation, after those that wait; the same one only once.

    recorded: the newest generation that was reported. A reply to an earlier text, reported late,
    must not pass for one to this. Called within `write`: before its first call a conversation has
    no lock, so another one may be at the same rows, or erase them.
    """
    is_ours = generation - recorded <= _MOST_UNREPORTED
    answered_from = generation if is_ours else recorded + 1
    waiting = PendingPrompt.objects.filter(project_id=project_id, conversation_name=conversation)
    newest = waiting.select_for_update().order_by("-generation").first()
    if newest is not None and text in _read(newest.text):
        # Asked again, or tried again after a failure: it waits for the later reply.
        newest.answered_from = max(newest.answered_from, answered_from)
        newest.save(update_fields=["answered_from"])
        return
    same = waiting.select_for_update().filter(generation=generation).first()
    texts = [] if same is None else _read(same.text)
    row = same or PendingPrompt(
        project_id=project_id, conversation_name=conversation, generation=generation
    )
    # As JSON: any text at all, lone surrogates too, comes back as it was.
    row.answered_from, row.text, row.at = answered_from, seal(json.dumps([*texts, text])), now
    # Where another one has stored the first text of this generation meanwhile, `write` begins anew.
    row.save(force_insert=same is None)


def rename(project_id: int, former: str, present: str) -> None:
    """Let the texts that wait by a conversation's former name wait by its present one."""
    waiting = PendingPrompt.objects.select_for_update().filter(project_id=project_id)
    own = {row.generation: row for row in waiting.filter(conversation_name=present)}
    for row in waiting.filter(conversation_name=former).order_by("generation"):
        same = own.get(row.generation)
        if same is not None:
            row.text = seal(json.dumps([*_read(row.text), *_read(same.text)]))
            row.answered_from = max(row.answered_from, same.answered_from)
            same.delete()
        row.conversation_name = present
        row.save(update_fields=["conversation_name", "text", "answered_from"])


def forget_answered(row: Conversation, *, first: int | None) -> None:
    """Drop the texts that a reply has answered. Nothing to ask where none waits.

    first: the first generation whose reply would answer one, read under the lock; None: none waits.
    A reply is a recorded call of the text's generation or a later one, that succeeded and did not
    end in calls of tools.
    """
    if first is None:
        return
    answered = (
        calls_of(row)
        .filter(generation__gte=first, status="success", cause="")
        .exclude(finish_reason=FinishReason.TOOL_CALLS.value)
        .order_by("-generation")
        .values_list("generation", flat=True)
        .first()
    )
    if answered is not None:
        _waiting(row).filter(answered_from__lte=answered).delete()


def pending(row: Conversation) -> tuple[str, ...]:
    """The texts that wait, oldest first. One that cannot be unsealed any more is passed over."""
    return tuple(_texts(_waiting(row).order_by("generation")))


def _texts(rows: QuerySet[PendingPrompt]) -> list[str]:
    return [text for sealed in rows.values_list("text", flat=True) for text in _read(sealed)]


def _read(sealed: str) -> list[str]:
    told = unseal(sealed)
    return [] if told is None else [str(text) for text in json.loads(told)]


def _waiting(row: Conversation) -> QuerySet[PendingPrompt]:
    return PendingPrompt.objects.filter(project_id=row.project_id, conversation_name=row.name)
