"""What a step of care reads, in statements that are written once.

Without the ORM, as in `glances`: a step read the same rows in fourteen statements, and writing
those took far longer than running them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TypeVar

from django.db import connection
from django.db.models import DEFERRED, Model

from helmdash.records.models import (
    Call,
    Conversation,
    Guidance,
    PendingPrompt,
    Project,
    Reminder,
    Round,
)
from helmdash.records.statements.direct import ask, tell

# What a step asks of a conversation; and of a round's newest call, which is judged by it.
_OF_CONVERSATION = (
    *("id", "project_id", "name", "model", "model_key", "client_window"),
    *("round_number", "generation", "is_round_empty", "newest_stream"),
)
_OF_CALL = (
    *("id", "generation", "model", "model_key", "upstream_model", "provider", "client_window"),
    *("prompt_tokens", "sent_bytes", "limit_tokens", "level_reason", "cause"),
)

# One guidance for each generation.
_TOLD_BEFORE = ("conversation_id", "generation", "project_id")


@dataclass(frozen=True, slots=True)
class OpenRound:
    """The open round of a conversation, and the newest care of any of its rounds.

    number, care: of the newest round that has a care (None: none has). restart: as `Round` holds
    it. has_inserts: prompts were recorded in the round. first_waiting: the first generation whose
    reply would answer a text of the user's that waits; None: none waits.
    """

    number: int | None
    care: object
    restart: Mapping[str, object]
    has_inserts: bool
    first_waiting: int | None


def lock_conversation(*, project_id: int, name: str) -> Conversation | None:
    """The row, locked until the transaction ends. None if it does not exist. One query."""
    told = (project_id, name)
    found = _first(Conversation, _OF_CONVERSATION, _lock_statement(connection.vendor), told)
    if found is not None:
        found.is_round_empty = bool(found.is_round_empty)  # SQLite has numbers only
        found.newest_stream = _read(found.newest_stream)
    return found


def find_opened(row: Conversation) -> OpenRound:
    """Look at a conversation that is locked. One query."""
    (found,) = ask(_opened_statement(connection.vendor), [row.pk, row.project_id])
    number, care, restart, has_inserts, first = found
    stored = _read(restart)
    return OpenRound(
        number=number,
        care=_read(care),
        restart=stored if isinstance(stored, dict) else {},
        has_inserts=bool(has_inserts),
        first_waiting=first,
    )


def find_newest_call(row: Conversation) -> Call | None:
    """The newest call of the open round, as far as care asks. None: it has none. One query."""
    told = (row.project_id, row.pk, row.round_number)
    return _first(Call, _OF_CALL, _call_statement(connection.vendor), told)


def store_care(row: Conversation, care: Mapping[str, object]) -> None:
    """Store where remediation stands in the open round. One statement."""
    told = (json.dumps(care), row.project_id, row.pk, row.round_number)
    tell(_care_statement(connection.vendor), told)


def find_own_text(row: Conversation, strength: str) -> tuple[int, str]:
    """How many reminders there are, and the project's own words for a guidance ("": none). One
    query."""
    told = (row.project_id, row.pk, row.project_id)
    ((reminders, text),) = ask(_text_statement(connection.vendor, strength), told)
    return int(reminders), text


def store_guidance(values: Mapping[str, object]) -> None:
    """Store what was told before a generation, in the place of what was told before it. One
    statement. values: by attribute, but for the id; numbers, texts and times."""
    told = [
        connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value
        for value in values.values()
    ]
    tell(_guidance_statement(connection.vendor, tuple(values)), told)


Row = TypeVar("Row", bound=Model)


def _first(
    model: type[Row], names: tuple[str, ...], statement: str, told: Sequence[str | int]
) -> Row | None:
    """The row that a statement finds, with the columns that it names; others are read when they
    are asked for."""
    rows = ask(statement, told)
    if not rows:
        return None
    found = rows[0]
    row = [DEFERRED if at is None else found[at] for at in _places(model, names)]
    return model.from_db(connection.alias, names, row)


@cache
def _places(model: type[Model], names: tuple[str, ...]) -> tuple[int | None, ...]:
    """For each column of the model, in its order: which of the names it is; None: none of them."""
    at = {name: place for place, name in enumerate(names)}
    return tuple(at.get(field.attname) for field in model._meta.concrete_fields)


@cache
def _lock_statement(vendor: str) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(map(quote, _OF_CONVERSATION))
    locked = " FOR UPDATE" if connection.features.has_select_for_update else ""
    table = quote(Conversation._meta.db_table)
    return f"SELECT {columns} FROM {table} WHERE project_id = %s AND name = %s{locked}"


@cache
def _opened_statement(vendor: str) -> str:
    conversation, rounds, told, waiting = _tables(Conversation, Round, Guidance, PendingPrompt)
    same = "x.conversation_id = c.id AND x.project_id = c.project_id"
    return (
        "SELECT r.number, r.care, o.restart,"
        f" EXISTS(SELECT 1 FROM {told} x WHERE {same} AND x.round_number = c.round_number"
        " AND x.position IS NOT NULL),"
        f" (SELECT MIN(x.answered_from) FROM {waiting} x WHERE x.project_id = c.project_id"
        " AND x.conversation_name = c.name)"
        f" FROM {conversation} c"
        f" LEFT JOIN {rounds} o ON o.conversation_id = c.id AND o.number = c.round_number"
        " AND o.project_id = c.project_id"
        f" LEFT JOIN {rounds} r ON r.project_id = c.project_id AND r.id = (SELECT x.id"
        f" FROM {rounds} x WHERE {same}"
        " AND x.care IS NOT NULL ORDER BY x.number DESC LIMIT 1)"
        " WHERE c.id = %s AND c.project_id = %s"
    )


@cache
def _call_statement(vendor: str) -> str:
    quote = connection.ops.quote_name
    (calls,) = _tables(Call)
    columns = ", ".join(map(quote, _OF_CALL))
    return (
        f"SELECT {columns} FROM {calls} WHERE project_id = %s AND conversation_id = %s"
        " AND round_number = %s AND generation IS NOT NULL ORDER BY generation DESC LIMIT 1"
    )


@cache
def _care_statement(vendor: str) -> str:
    (rounds,) = _tables(Round)
    return (
        f"UPDATE {rounds} SET care = %s"
        " WHERE project_id = %s AND conversation_id = %s AND number = %s"
    )


@cache
def _guidance_statement(vendor: str, names: tuple[str, ...]) -> str:
    quote = connection.ops.quote_name
    (told,) = _tables(Guidance)
    columns = [str(Guidance._meta.get_field(name).column) for name in names]  # type: ignore[union-attr]
    changed = (quote(column) for column in columns if column not in _TOLD_BEFORE)
    return (
        f"INSERT INTO {told} ({', '.join(map(quote, columns))})"
        f" VALUES ({', '.join(['%s'] * len(columns))})"
        f" ON CONFLICT ({', '.join(map(quote, _TOLD_BEFORE))}) DO UPDATE SET "
        + ", ".join(f"{column} = EXCLUDED.{column}" for column in changed)
    )


@cache
def _text_statement(vendor: str, strength: str) -> str:
    quote = connection.ops.quote_name
    projects, reminders = _tables(Project, Reminder)
    text = quote(f"{strength}_text")
    return (
        f"SELECT (SELECT COUNT(*) FROM {reminders} WHERE project_id = %s AND conversation_id = %s),"
        f" {text} FROM {projects} WHERE id = %s"
    )


def _tables(*models: type[Model]) -> list[str]:
    return [connection.ops.quote_name(model._meta.db_table) for model in models]


def _read(value: object) -> object:
    """A JSON column: both databases give its text to a plain cursor."""
    return json.loads(value) if isinstance(value, str | bytes) else value
