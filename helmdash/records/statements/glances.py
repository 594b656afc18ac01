"""Where a conversation stands, in one statement: what care reads before every call of the gateway.

Without the ORM, which takes ten times as long to write the statement as a database to run it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from django.db import connection

from helmdash.records.models import Call, Conversation, Guidance, Round
from helmdash.records.statements.direct import ask


@dataclass(frozen=True, slots=True)
class Glance:
    """A conversation, its open round, and that round's newest call (None: it has none).

    newest_stream: as `Conversation` holds it; care, restart: as `Round` holds them. has_inserts:
    prompts were recorded in the round.
    """

    round_number: int
    generation: int
    is_round_empty: bool
    newest_stream: Mapping[str, object] | None
    care: Mapping[str, object] | None
    restart: Mapping[str, object] | None
    has_inserts: bool
    model: str | None
    prompt_tokens: int | None
    sent_bytes: int | None
    level_reason: str | None
    cause: str | None


def find_glance(*, project_id: int, name: str) -> Glance | None:
    """Look at a conversation. None if it does not exist. One query, which locks nothing."""
    rows = ask(_statement(connection.vendor), [project_id, name])
    if not rows:
        return None
    number, generation, is_empty, stream, care, restart, has_inserts, *call = rows[0]
    return Glance(
        number,
        generation,
        bool(is_empty),
        _read(stream),
        _read(care),
        _read(restart),
        bool(has_inserts),
        *call,
    )


@cache
def _statement(vendor: str) -> str:
    quote = connection.ops.quote_name
    conversation, opened, call, told = (
        quote(model._meta.db_table) for model in (Conversation, Round, Call, Guidance)
    )
    # Where calls lie in partitions: in those that the conversation reaches over.
    within = " AND {0}.started_at BETWEEN c.started_at AND c.latest_at"
    within = within if vendor == "postgresql" else ""
    same = "x.conversation_id = c.id AND x.project_id = c.project_id"
    return (
        "SELECT c.round_number, c.generation, c.is_round_empty, c.newest_stream, r.care, r.restart,"
        f" EXISTS(SELECT 1 FROM {told} x WHERE {same} AND x.round_number = c.round_number"
        " AND x.position IS NOT NULL),"
        " k.model, k.prompt_tokens, k.sent_bytes, k.level_reason, k.cause"
        f" FROM {conversation} c"
        f" LEFT JOIN {opened} r ON r.conversation_id = c.id AND r.number = c.round_number"
        " AND r.project_id = c.project_id"
        f" LEFT JOIN {call} k ON k.project_id = c.project_id AND k.conversation_id = c.id"
        f" AND k.generation = (SELECT MAX(x.generation) FROM {call} x WHERE {same}"
        f" AND x.round_number = c.round_number{within.format('x')}){within.format('k')}"
        " WHERE c.project_id = %s AND c.name = %s"
    )


def _read(value: object) -> Mapping[str, object] | None:
    """A JSON column: both databases give its text to a plain cursor."""
    found = json.loads(value) if isinstance(value, str | bytes) else value
    return found if isinstance(found, dict) else None
