"""Months of calls are tables of their own on PostgreSQL, made as calls come."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from helmdash.operations.database.months import make_ahead
from helmdash.queries import calls
from helmdash.queries.access import ProjectInfo
from helmdash.records import partitions
from helmdash.records.models import Call, CallPayload
from tests.factories import NOW, make_capture
from tests.recording.support import record
from tests.support import ROOT

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no partitions"),
]

# What Citus is told to distribute by project: calls, what hangs on them, and their names.
DISTRIBUTED = {*partitions.TABLES, "records_callname"}
# What grows with a project's calls and is not distributed: each has a key of a number alone, as
# docs/scaling.md says.
KEYED_BY_NUMBER = {
    "records_conversation",
    "records_conversationmark",
    "records_fit",
    "records_guidance",
    "records_healthchange",
    "records_planattempt",
    "records_plancatalog",
    "records_planrecord",
    "records_planstep",
    "records_rollup",
    "records_round",
    "records_storedmessage",
    "records_trialcall",
    "records_uncountedcalls",
}


def ask(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def lie_in(table: str) -> dict[int, str]:
    """The partition of each row, by its call."""
    key = "id" if table == "records_call" else "call_id"
    return dict(ask(f"SELECT {key}, tableoid::regclass::text FROM {table}"))


def test_every_key_begins_with_the_project_and_holds_the_time() -> None:
    keys = ask(
        "SELECT c.relname, p.relkind, array_agg(a.attname::text ORDER BY k.place)"
        " FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
        " LEFT JOIN pg_class p ON p.oid = c.oid"
        " CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum"
        " WHERE i.indisunique AND c.relname = ANY(%s) GROUP BY i.indexrelid, c.relname, p.relkind",
        sorted(DISTRIBUTED),
    )

    assert {table for table, *_ in keys} == DISTRIBUTED
    assert [key for key in keys if key[2][0] != "project_id"] == []
    parted = [columns for _, kind, columns in keys if kind == "p"]
    assert len(parted) == len(partitions.TABLES)
    assert all("started_at" in columns for columns in parted)
    # A distributed table may refer to one that is on every node, as projects are: to none else.
    assert set(
        ask(
            "SELECT confrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
            " AND conrelid::regclass::text = ANY(%s)",
            sorted(DISTRIBUTED),
        )
    ) <= {("records_project",), ("records_ruleset",)}


def test_what_cannot_be_distributed_by_project_is_what_the_page_on_scaling_names() -> None:
    first_columns = ask(
        "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
        " WHERE i.indisprimary AND c.relname = ANY(%s)",
        sorted(KEYED_BY_NUMBER),
    )
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")

    assert {table for table, _ in first_columns} == KEYED_BY_NUMBER
    assert [table for table, column in first_columns if column == "project_id"] == []
    assert [table for table in sorted(KEYED_BY_NUMBER) if f"`{table}`" not in page] == []


@pytest.mark.parametrize(
    ("at", "end"),
    [
        ("2001-02-03T00:00:00Z", "before"),
        ("2019-12-31T23:59:59.999999Z", "before"),
        ("2020-01-01T00:00:00Z", "2020_01"),
        ("2024-02-29T23:59:59.999999Z", "2024_02"),
        ("2024-03-01T00:59:59+01:00", "2024_02"),
        ("2024-12-31T23:30:00-01:00", "2025_01"),
    ],
)
def test_a_call_of_any_time_finds_its_month(project: ProjectInfo, at: str, end: str) -> None:
    record(project, make_capture(id="a", started_at=datetime.fromisoformat(at)))
    pk = Call.objects.get().pk

    assert lie_in("records_call") == {pk: f"records_call_{end}"}
    assert lie_in("records_callpayload") == {pk: f"records_callpayload_{end}"}
    (answer,) = record(project, make_capture(id="a", started_at=NOW))
    assert answer.duplicate
    assert calls.find(project_id=project.id, call_id="a") is not None


def test_a_history_of_years_makes_a_year_of_months_in_a_transaction(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    make = partitions.make

    def watched(months: Collection[partitions.Month]) -> None:
        made.append(len(months))
        make(months)

    monkeypatch.setattr(partitions, "make", watched)
    years = [datetime(2020 + n // 12, n % 12 + 1, 9, tzinfo=UTC) for n in range(60)]

    answers = record(project, *(make_capture(id=f"{at:%Y-%m}", started_at=at) for at in years))

    assert len(answers) == 60
    assert set(lie_in("records_call").values()) == {f"records_call_{at:%Y_%m}" for at in years}
    assert max(made) <= partitions.MOST_AT_ONCE


def test_months_are_made_ahead_in_any_number_of_tries() -> None:
    for _ in range(2):
        make_ahead(now=datetime(2031, 11, 30, 23, tzinfo=UTC))

    newest = [partitions.partition_of("", month) for month in partitions.existing()[-3:]]
    assert newest == ["_2031_11", "_2031_12", "_2032_01"]


def test_a_month_that_another_process_dropped_is_made_again(project: ProjectInfo) -> None:
    at = datetime(2024, 5, 5, tzinfo=UTC)
    record(project, make_capture(id="a", started_at=at))
    ask("DELETE FROM records_callname RETURNING 1")
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("DROP TABLE records_call_2024_05, records_callpayload_2024_05")

    (answer,) = record(project, make_capture(id="b", started_at=at))

    assert answer.generation == 2
    assert list(lie_in("records_call").values()) == ["records_call_2024_05"]


def test_calls_of_before_go_into_their_months(project: ProjectInfo) -> None:
    """The migration, on plain tables as they were, with all that they held."""
    for month in (3, 5):
        at = datetime(2023, month, 7, tzinfo=UTC)
        record(project, make_capture(id=f"{month}", started_at=at, conversation="talk"))
    rows, payloads = list(Call.objects.values()), list(CallPayload.objects.values())
    newest = max(row["id"] for row in rows)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for statement in _AS_IT_WAS.split(";"):
            cursor.execute(statement)
        cursor.execute("SELECT setval('records_call_id_seq', %s)", [newest])
    name, loader = "0020_partitions", MigrationLoader(None)
    migration = loader.disk_migrations["records", name]
    before = loader.project_state(("records", migration.dependencies[0][1]))
    partitions.forget()

    with connection.schema_editor(atomic=False) as editor:
        migration.apply(before, editor)

    assert list(Call.objects.values()) == rows
    assert list(CallPayload.objects.values()) == payloads
    assert set(lie_in("records_call").values()) == {"records_call_2023_03", "records_call_2023_05"}
    (answer,) = record(project, make_capture(id="new", conversation="talk"))
    assert answer.generation == 3
    assert Call.objects.get(name="new").pk == newest + 1


_AS_IT_WAS = """
    CREATE TABLE plain (LIKE records_call INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
    CREATE TABLE beside (LIKE records_callpayload INCLUDING DEFAULTS);
    INSERT INTO plain SELECT * FROM records_call;
    INSERT INTO beside SELECT * FROM records_callpayload;
    DROP TABLE records_call, records_callpayload;
    ALTER TABLE plain RENAME TO records_call;
    ALTER TABLE beside RENAME TO records_callpayload;
    ALTER TABLE records_callpayload DROP COLUMN project_id, DROP COLUMN started_at;
    ALTER TABLE records_callpayload ADD PRIMARY KEY (call_id);
    ALTER TABLE records_call ADD PRIMARY KEY (id);
    ALTER TABLE records_call ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY;
    CREATE INDEX call_by_time ON records_call (project_id, started_at, id);
    CREATE INDEX call_by_level ON records_call (project_id, level, started_at, id);
    ALTER TABLE records_call ADD CONSTRAINT of_project FOREIGN KEY (project_id)
        REFERENCES records_project (id) DEFERRABLE INITIALLY DEFERRED
"""
