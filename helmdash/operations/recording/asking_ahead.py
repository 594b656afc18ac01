"""What a few calls will be asked about for certain, asked in one round trip.

A round trip to PostgreSQL costs a single report as much as what it asks. What a batch asks is dear
by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime

from helmdash.core.calls.joining import session_of_agent
from helmdash.operations.recording.conversation_rows import lock_question_by_name
from helmdash.operations.recording.joining import names_of
from helmdash.operations.recording.judged.judging import Judged
from helmdash.operations.recording.message_keys import MessageKeys, seen_question
from helmdash.operations.recording.named_conversations import most_begun, named
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.call_names import places_question
from helmdash.records.models import Call, Conversation, Payload
from helmdash.records.statements.bulk import ids_question, is_few
from helmdash.records.statements.direct import Question, asked_ahead, can_ask_ahead


def asks_ahead(calls: int) -> bool:
    """Whether so many calls are asked about ahead: few of them, where calls are stored."""
    return is_few(calls) and can_ask_ahead()


def ahead(
    project: ProjectInfo, judged: Sequence[Judged], keys: MessageKeys, *, now: datetime
) -> AbstractContextManager[None]:
    """To be entered at the beginning of the transaction that records these, where `asks_ahead`."""
    for item in judged:
        # Before they are placed stored calls may be moved, and with them the answers.
        if item.capture.inside or session_of_agent(item.capture) is not None:
            return nullcontext()
    lasting = [ids_question(Call, len(judged))]
    if named(judged):
        # Of use where one of them is new; numbers more or less are nothing.
        lasting.append(ids_question(Conversation, most_begun(judged)))
    likely = keys.likely(judged) if project.payload != Payload.OFF.value else []
    if likely:
        # What another writer stores meanwhile may be stored again, which changes nothing.
        lasting.append(seen_question(project.id, likely, now=now))
    return asked_ahead(_questions(project.id, judged), lasting=lasting)


def _questions(project_id: int, judged: Sequence[Judged]) -> list[Question]:
    names = named(judged)
    # First what may wait for another writer: what is asked behind it sees what that one has stored.
    questions = [lock_question_by_name(project_id, names)] if names else []
    questions += [
        budgets.revision_question(),
        places_question(project_id, [name for item in judged for name in names_of(item)]),
    ]
    return questions
