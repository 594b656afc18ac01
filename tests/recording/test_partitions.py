"""Months of calls are tables of their own on PostgreSQL, made as calls come."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.db.migrations.loader import MigrationLoader

from helmdash.operations.database.months import make_ahead
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.records.models import Call, CallPayload
from helmdash.records.statements import partitions
from tests.factories import NOW, make_capture
from tests.recording.support import reading, record
from tests.support import ROOT

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no partitions"),
]

# Small tables, which a distributed database keeps whole on every node (docs/scaling.md says of each
# why it stays small). All others are distributed by project.
ON_EVERY_NODE = {
    *("auth_group", "auth_group_permissions", "auth_permission", "auth_user", "auth_user_groups"),
    *("auth_user_user_permissions", "django_admin_log", "django_content_type"),
    *("django_migrations", "django_session", "records_alert", "records_alertchannel"),
    *("records_alertdelivery", "records_alertmessage", "records_alertrule", "records_apikey"),
    *("records_auditentry", "records_budget", "records_budgetalias", "records_catalogrevision"),
    *("records_exporter", "records_failuremark", "records_firstview", "records_historicalbudget"),
    *("records_historicalbudgetalias", "records_historicalmembership", "records_job"),
    *("records_keptanswer", "records_knock", "records_lagsample", "records_learnedmodel"),
    *("records_learnedwindow", "records_look", "records_membership", "records_oidcidentity"),
    *("records_project", "records_recorderledger", "records_ruleset", "records_savedview"),
    *("records_schemamark", "records_signedin", "records_signinthrottle", "records_suggestion"),
    *("records_trial", "records_upstream", "records_weeklysubscription", "records_whatif"),
}


def ask(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def lie_in(table: str) -> dict[int, str]:
    """The partition of each row, by its call."""
    key = "id" if table == "records_call" else "call_id"
    return dict(ask(f"SELECT {key}, tableoid::regclass::text FROM {table}"))


_TABLES = (
    "SELECT c.relname, c.relkind FROM pg_class c"
    " WHERE c.relnamespace = current_schema()::regnamespace"
    " AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
)


def distributed() -> set[str]:
    """Every table there is, but for those that are named to be on every node."""
    found = {str(name) for name, _ in ask(_TABLES)}
    assert found >= ON_EVERY_NODE
    return found - ON_EVERY_NODE


def test_every_key_begins_with_the_project() -> None:
    """A table that is distributed by a column has it in each of its keys."""
    keys = ask(
        "SELECT c.relname, c.relkind, i.indisprimary, array_agg(a.attname::text ORDER BY k.place)"
        " FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
        " CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum"
        " WHERE i.indisunique AND c.relname = ANY(%s)"
        " GROUP BY i.indexrelid, i.indisprimary, c.relname, c.relkind",
        sorted(distributed()),
    )

    assert {table for table, _, is_primary, _ in keys if is_primary} == distributed()
    assert [key for key in keys if key[3][0] != "project_id"] == []
    parted = [columns for _, kind, _, columns in keys if kind == "p"]
    assert len(parted) == len(partitions.TABLES)
    assert all("started_at" in columns for columns in parted)


def test_a_table_refers_to_rows_of_its_own_project_or_to_what_is_on_every_node() -> None:
    keys = ask(
        "SELECT k.conrelid::regclass::text, k.confrelid::regclass::text,"
        " array_agg(a.attname::text ORDER BY c.place), array_agg(b.attname::text ORDER BY c.place),"
        " bool_and(k.convalidated)"
        " FROM pg_constraint k"
        " CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS c(own, other, place)"
        " JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = c.own"
        " JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = c.other"
        " WHERE k.contype = 'f' AND k.conparentid = 0 GROUP BY k.oid"
    )
    between = [key for key in keys if key[1] in distributed()]

    assert len(between) == 9
    assert [key for key in between if key[0] not in distributed()] == []
    assert [key for key in between if (key[2][0], key[3][0]) != ("project_id", "project_id")] == []
    assert [key for key in keys if not key[4]] == []


def test_who_looks_for_rows_by_a_number_alone_finds_an_index() -> None:
    """Code of the release before, the admin and what Django deletes know no project."""
    numbers = {(f"records_{name}", "conversation_id") for name in _OF_CONVERSATIONS}
    numbers |= {("records_planstep", "plan_id"), ("records_planattempt", "plan_id")}
    numbers |= {("records_conversation", "id"), ("records_planrecord", "id"), ("records_fit", "id")}
    found = ask(
        "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] WHERE i.indisvalid"
    )

    assert sorted(numbers - set(found)) == []


_OF_CONVERSATIONS = (
    *("round", "conversationmark", "healthchange", "guidance", "reminder", "triageword"),
    "clientevent",
)


def test_the_page_on_scaling_names_what_is_on_every_node() -> None:
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")

    assert [table for table in sorted(ON_EVERY_NODE) if f"`{table}`" not in page] == []


@pytest.mark.django_db(transaction=True)
def test_keys_of_before_are_changed_while_others_read(project: ProjectInfo) -> None:
    """The migration, on tables as they were: with rows, with somebody who reads them for longer
    than a lock is waited for, and with an index that a broken-off try left."""
    record(project, make_capture(id="a", conversation="talk"))
    migration: Any = MigrationLoader(None).disk_migrations["records", "0056_keys_by_project"]
    (change,) = migration.operations
    with connection.cursor() as cursor:
        for statement in _KEYS_OF_BEFORE.split(";"):
            cursor.execute(statement)
    with reading("records_round", seconds=1.5), connection.schema_editor(atomic=False) as editor:
        change.database_forwards("records", editor, None, None)

    test_every_key_begins_with_the_project()
    test_a_table_refers_to_rows_of_its_own_project_or_to_what_is_on_every_node()
    (answer,) = record(project, make_capture(id="b", conversation="talk"))
    assert answer.generation == 2
    with pytest.raises(IntegrityError), connection.cursor() as cursor:
        cursor.execute("UPDATE records_round SET conversation_id = -1")


_KEYS_OF_BEFORE = """
    ALTER TABLE records_round DROP CONSTRAINT records_round_conversation_id;
    ALTER TABLE records_round DROP CONSTRAINT records_round_pkey;
    ALTER TABLE records_round ADD PRIMARY KEY (id);
    ALTER TABLE records_round DROP CONSTRAINT round_number;
    ALTER TABLE records_round ADD CONSTRAINT round_number
        UNIQUE (conversation_id, number, project_id);
    DROP INDEX records_round_by_number;
    CREATE INDEX records_round_by_number ON records_round (id);
    UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'records_round_by_number'::regclass;
    ALTER TABLE records_conversationmark DROP CONSTRAINT records_conversationmark_conversation_id;
    ALTER TABLE records_healthchange DROP CONSTRAINT records_healthchange_conversation_id;
    ALTER TABLE records_guidance DROP CONSTRAINT records_guidance_conversation_id;
    ALTER TABLE records_reminder DROP CONSTRAINT records_reminder_conversation_id;
    ALTER TABLE records_triageword DROP CONSTRAINT records_triageword_conversation_id;
    ALTER TABLE records_clientevent DROP CONSTRAINT records_clientevent_conversation_id;
    ALTER TABLE records_conversation DROP CONSTRAINT records_conversation_pkey;
    ALTER TABLE records_conversation ADD PRIMARY KEY (id);
    ALTER TABLE records_round ADD FOREIGN KEY (conversation_id) REFERENCES records_conversation (id)
        DEFERRABLE INITIALLY DEFERRED
"""


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
