"""Stored fingerprints of requests (core.conversations.fingerprints): found, written, deleted.

Their table is ConversationMark.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from django.db import connection

from helmdash.core.values import quick_value
from helmdash.records.models import Conversation, ConversationMark
from helmdash.records.statements.bulk import insert_rows, upsert_rows
from helmdash.records.statements.direct import ask, tell_many

# A first message that every chat of a program begins with is left by all of them. One that waits
# for its next call is seldom older than so many others that began in the same way.
MOST_SEEN = 8


@quick_value(frozen=True, slots=True)
class SeenFingerprint:
    """A fingerprint of the newest conversations that left it, with their names and newest calls."""

    hash: str
    conversation_id: int
    generation: int
    newest: int
    name: str


def find_fingerprints(project_id: int, hashes: Collection[str]) -> list[SeenFingerprint]:
    """Who left these: for each at most the MOST_SEEN newest conversations. One query."""
    if not hashes:
        return []
    is_postgres = connection.vendor == "postgresql"
    wanted = list(hashes) if is_postgres else json.dumps(list(hashes))
    found = ask(_search(connection.vendor), [wanted, project_id])
    return [SeenFingerprint(*row) for row in found]


@cache
def _search(vendor: str) -> str:
    fingerprints = connection.ops.quote_name(ConversationMark._meta.db_table)
    conversations = connection.ops.quote_name(Conversation._meta.db_table)
    newest = (
        f"FROM {fingerprints} x WHERE x.project_id = %s AND x.hash = w.value"
        f" ORDER BY x.conversation_id DESC LIMIT {MOST_SEEN}"
    )
    if vendor == "postgresql":
        source = f"unnest(%s::text[]) AS w(value) CROSS JOIN LATERAL (SELECT * {newest}) m"
    else:
        source = f"json_each(%s) w JOIN {fingerprints} m ON m.id IN (SELECT x.id {newest})"
    return (
        f"SELECT m.hash, m.conversation_id, m.generation, c.generation, c.name FROM {source}"
        f" JOIN {conversations} c ON c.id = m.conversation_id"
    )


def store_fingerprints(
    fresh: Sequence[Mapping[str, Any]], repeated: Sequence[Mapping[str, Any]]
) -> None:
    """Write fingerprints: `fresh` of conversations that are new, `repeated` of all others.

    A conversation that leaves a fingerprint again has left it with its newer call.
    """
    insert_rows(ConversationMark, fresh)
    upsert_rows(
        ConversationMark,
        repeated,
        unique=("project_id", "hash", "conversation_id"),
        update="generation",
    )


def delete_fingerprints(before: Sequence[tuple[int, int]]) -> None:
    """Delete the fingerprints of (conversation, generation) pairs up to that generation."""
    table = connection.ops.quote_name(ConversationMark._meta.db_table)
    tell_many(f"DELETE FROM {table} WHERE conversation_id = %s AND generation <= %s", before)
