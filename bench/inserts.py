"""The same rows stored by Django's bulk_create and by the bare driver: what recording is held to.

Run as a worker process (bench.databases.Worker): one JSON command a line on stdin, one answer.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import django

django.setup()

import orjson  # noqa: E402
from django.db import connection, models, transaction  # noqa: E402
from django.utils import timezone  # noqa: E402

from bench.payloads import calls, grown_calls  # noqa: E402
from helmdash.core.calls.capture import Capture  # noqa: E402
from helmdash.core.rules import CALL_RULES  # noqa: E402
from helmdash.operations.database import rule_sets  # noqa: E402
from helmdash.operations.recorder.own_connection import use_own_connection  # noqa: E402
from helmdash.operations.recording import call_rows  # noqa: E402
from helmdash.operations.recording.judged.judging import judge  # noqa: E402
from helmdash.operations.recording.judged.masking import masker  # noqa: E402
from helmdash.queries.access.access import default_project  # noqa: E402
from helmdash.queries.budgets import budgets  # noqa: E402
from helmdash.records.call_names import name_row  # noqa: E402
from helmdash.records.models import (  # noqa: E402
    Call,
    CallName,
    CallPayload,
    Conversation,
    Project,
    StoredMessage,
)
from helmdash.records.statements.bulk import allocate_ids  # noqa: E402

_PER_CONVERSATION = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What recording stores for some calls, by attribute name."""

    calls: list[dict[str, Any]]
    payloads: list[dict[str, Any]]
    messages: list[dict[str, Any]]


def main() -> None:
    """Answer commands until stdin ends."""
    use_own_connection()  # as recording has it
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


def _answer(command: dict[str, Any]) -> Any:
    match command["do"]:
        case "payload":
            return Project.objects.filter(is_default=True).update(payload=command["keep"])
        case "bulk_create":
            return _timed(_bulk_create(_rows(command["calls"], command["run"])))
        case "raw":
            return _timed(_raw(_rows(command["calls"], command["run"])))
        case "copy":
            return _timed(_copy(command["calls"], command["run"], command["size"]))
        case _:
            return {"calls": Call.objects.count(), "messages": StoredMessage.objects.count()}


def _timed(store: Callable[[], None]) -> float:
    """Seconds of the inserts and their commit; making the rows is not counted."""
    began = time.perf_counter()
    with transaction.atomic():
        store()
    return time.perf_counter() - began


def _bulk_create(rows: Rows) -> Callable[[], None]:
    made: list[tuple[type[models.Model], list[Any], bool]] = [
        (CallName, [CallName(**name_row(row)) for row in rows.calls], False),
        (Call, [Call(**row) for row in rows.calls], False),
        (CallPayload, [CallPayload(**row) for row in rows.payloads], False),
        # The system message is there already, as it is for the recorder.
        (StoredMessage, [StoredMessage(**row) for row in rows.messages], True),
    ]

    def store() -> None:
        for model, objects, may_be_there in made:
            model._default_manager.bulk_create(objects, ignore_conflicts=may_be_there)

    return store


def _raw(rows: Rows) -> Callable[[], None]:
    shared = StoredMessage.objects.values_list("hash", flat=True)
    known = set(shared.filter(hash__in=[row["hash"] for row in rows.messages]))
    fresh = [row for row in rows.messages if row["hash"] not in known]
    tables = [
        _table(model, given)
        for model, given in (
            (CallName, [name_row(row) for row in rows.calls]),
            (Call, rows.calls),
            (CallPayload, rows.payloads),
            (StoredMessage, fresh),
        )
    ]

    def store() -> None:
        for table, columns, values in tables:
            _insert(table, columns, values)

    return store


def _copy(count: int, run: str, size: int) -> Callable[[], None]:
    """PostgreSQL's floor for batches: calls as narrow rows of one table with three indexes."""
    compression = "COMPRESSION lz4" if _has_lz4() else ""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE IF NOT EXISTS floor_call (id bigserial PRIMARY KEY, name text UNIQUE,"
            " conversation text, model text, prompt_tokens bigint, completion_tokens bigint,"
            f" finish_reason text, started_at timestamptz DEFAULT now(), body text {compression})"
        )
        for columns in ("started_at, id", "conversation, id", "model, started_at"):
            name = "floor_" + columns.partition(",")[0]
            cursor.execute(f"CREATE INDEX IF NOT EXISTS {name} ON floor_call ({columns})")
    columns = "name, conversation, model, prompt_tokens, completion_tokens, finish_reason, body"
    rows = [
        (
            call["id"],
            call["conversation"],
            call["model"],
            call["usage"]["prompt_tokens"],
            call["usage"]["completion_tokens"],
            call["finish_reason"],
            orjson.dumps(call).decode(),
        )
        for call in grown_calls(count, run, size)
    ]
    return lambda: _insert("floor_call", columns, rows)


def _has_lz4() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
        )
        return bool(cursor.fetchone()[0])


def _insert(table: str, columns: str, values: Sequence[tuple[Any, ...]]) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)
            return
        holes = ", ".join("?" * len(values[0]))
        connection.connection.executemany(
            f"INSERT INTO {table} ({columns}) VALUES ({holes})", values
        )


def _table(
    model: type[models.Model], rows: list[dict[str, Any]]
) -> tuple[str, str, list[tuple[Any, ...]]]:
    fields = {field.attname: field for field in model._meta.concrete_fields}
    columns = ", ".join(f'"{fields[name].column}"' for name in rows[0])
    values = [tuple(_plain(fields[name], value) for name, value in row.items()) for row in rows]
    return model._meta.db_table, columns, values


def _plain(field: models.Field[Any, Any], value: Any) -> Any:
    if isinstance(field, models.JSONField) and value is not None:
        return orjson.dumps(value).decode()
    if isinstance(field, models.DateTimeField) and connection.vendor == "sqlite":
        return connection.ops.adapt_datetimefield_value(value)
    return value


def _rows(count: int, run: str) -> Rows:
    """The rows of `count` calls with their ids, places and conversations."""
    now = timezone.now()
    project = default_project()
    rules = budgets.table(project_id=project.id)
    numbers = allocate_ids(Call, count)
    rules_id = rule_sets.keep(CALL_RULES)
    talks = _conversations(project.id, run, max(1, count // _PER_CONVERSATION))
    rows = Rows(calls=[], payloads=[], messages=[])
    messages: dict[str, object] = {}
    for number, given in zip(numbers, calls(count=count, run=run), strict=True):
        capture = Capture(**{**given, "messages": tuple(given["messages"])})
        item = judge(capture, rules, caller="bench", now=now)
        talk = talks[given["conversation"].rpartition("-talk-")[2]]
        talk.generation += 1
        placed, mask = call_rows.Placed(item=item), masker(project)
        row = call_rows.call_row(
            placed, project_id=project.id, rules_id=rules_id, masker=mask, now=now
        )
        row |= {"conversation_id": talk.pk, "round_number": 1, "generation": talk.generation}
        side = call_rows.payload_row(
            placed,
            project_id=project.id,
            call_id=number,
            payload=project.payload,
            masker=mask,
            keys_of=list,
            messages=messages,
        )
        rows.calls.append({**row, "id": number})
        if side is not None:
            rows.payloads.append(side)
    rows.messages.extend(
        {"project_id": project.id, "hash": key, "body": body, "latest_seen_at": now}
        for key, body in messages.items()
    )
    return rows


def _conversations(project_id: int, run: str, count: int) -> dict[str, Conversation]:
    now = timezone.now()
    return {
        str(number): Conversation.objects.create(
            project_id=project_id,
            name=f"{run}-talk-{number}",
            model="bench",
            started_at=now,
            latest_at=now,
        )
        for number in range(count)
    }


if __name__ == "__main__":
    main()
