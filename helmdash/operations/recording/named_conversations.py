"""The conversations that the calls of a batch name: found, made where missing, and locked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from helmdash.core.calls.joining import session_name
from helmdash.operations.database.transactions import Collision
from helmdash.operations.recording.conversation_rows import (
    ConversationIds,
    ConversationRow,
    is_unused,
    lock_by_id,
    lock_by_name,
    make_named,
)
from helmdash.operations.recording.judged.judging import Judged
from helmdash.records.call_names import find_conversations
from helmdash.records.statements.direct import forget_asked_ahead


def lock_conversations(
    project_id: int, judged: Sequence[Judged], ids: ConversationIds
) -> dict[str, ConversationRow]:
    """The conversations that the batch names, locked by name; those that are missing are begun."""
    names = named(judged)
    if not names:
        return {}
    found = {row.name: row for row in lock_by_name(project_id, names)}
    missing = {name: item for name, item in names.items() if name not in found}
    if missing:
        elsewhere = _lock_elsewhere(project_id, missing, found.values())
        found |= elsewhere
        missing = {name: item for name, item in missing.items() if name not in elsewhere}
    if missing:
        found |= make_named(project_id, missing, ids)
    if len(found) < len(names):
        raise Collision("a conversation was deleted while a call of it came in")
    return found


def named(judged: Sequence[Judged]) -> dict[str, Judged]:
    """The conversations that a batch names, each with the first call that does."""
    names: dict[str, Judged] = {}
    for item in judged:
        if item.capture.conversation:
            names.setdefault(item.capture.conversation, item)
    return names


def most_begun(judged: Sequence[Judged]) -> int:
    """So many conversations these may begin: one for each name, and for each call without."""
    return len(named(judged)) + sum(not item.capture.conversation for item in judged)


def _lock_elsewhere(
    project_id: int, missing: Mapping[str, Judged], held: Iterable[ConversationRow]
) -> dict[str, ConversationRow]:
    """Sessions whose calls by the gateway are in a conversation of another name, locked."""
    told = {name: session_name(item.capture) for name, item in missing.items()}
    sessions = [session for session in told.values() if session is not None]
    if not sessions:
        return {}
    ids = find_conversations(project_id, sessions)
    if not ids:
        return {}
    rows = {row.id: row for row in lock_by_id(project_id, ids.values())}
    forget_asked_ahead()
    # A batch may name one by both of its names: that is one row.
    rows |= {row.id: row for row in held if row.id in rows}
    found = {name: rows.get(ids.get(session or "", 0)) for name, session in told.items()}
    return {name: row for name, row in found.items() if row is not None}


def follow_sessions(
    project_id: int,
    judged: Sequence[Judged],
    conversations: dict[str, ConversationRow],
    stored_in: Callable[[Judged], str | None],
) -> None:
    """Put the conversation of a stored call in the place of a new one, where a batch tells of the
    call by its session.

    conversations: by the names that the batch has for them. stored_in: the conversation of the
    stored call that an item tells of again; None: there is none.
    """
    for item in judged:
        name = item.capture.conversation or ""
        if session_name(item.capture) is None or not is_unused(conversations[name]):
            continue
        told = stored_in(item)
        if told is None or told == name:
            continue
        rows = [row for row in conversations.values() if row.name == told]
        if rows := rows or lock_by_name(project_id, [told]):
            conversations[name] = rows[0]


def lock_told(
    project_id: int,
    names: Iterable[str],
    conversations: dict[str, ConversationRow],
) -> None:
    """Add the conversations of stored calls that are told of again, locked, to those of a batch.

    conversations: by the names that the batch has for them. What was erased meanwhile is left out.
    """
    held = {row.name for row in conversations.values()}
    wanted = {name for name in names if name not in held}
    if wanted:
        conversations |= {row.name: row for row in lock_by_name(project_id, wanted)}
