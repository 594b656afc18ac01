from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from helmdash.core.calls.capture import Capture
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Conversation
from helmdash.records.querysets import models_seen
from tests.admin.forms import text_of
from tests.admin.house import make_project, record
from tests.factories import NOW, make_capture

CALLS = "/admin/records/call/"
READ_ONLY = ("call", "conversation", "fit", "healthchange")


def names(client: Client, query: str = "", address: str = CALLS) -> list[str]:
    return [row.name for row in client.get(f"{address}?{query}").context["cl"].result_list]


def captures(count: int) -> list[Capture]:
    return [
        make_capture(
            id=f"call-{n:03}",
            conversation=f"c{n % 3}",
            model=f"acme/m{n % 2}",
            started_at=NOW + timedelta(seconds=n),
        )
        for n in range(count)
    ]


@pytest.mark.parametrize("table", READ_ONLY)
def test_no_list_of_records_counts_distinguishes_or_sorts_without_an_index(
    operator: Client, table: str
) -> None:
    record(*captures(5))

    with CaptureQueriesContext(
        connection,
    ) as ran:
        response = operator.get(f"/admin/records/{table}/")

    assert response.status_code == 200
    on_table = [q["sql"] for q in ran if f'FROM "records_{table}"' in q["sql"]]
    assert on_table
    assert not [sql for sql in on_table if "COUNT(" in sql.upper() or "DISTINCT" in sql.upper()]
    rows = [sql for sql in on_table if "RECURSIVE" not in sql]  # the others walk along values
    (page,) = [sql for sql in rows if "ORDER BY" in sql and "LIMIT" in sql]
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {page}")
            plan = " ".join(str(row[-1]) for row in cursor.fetchall())
        assert "USE TEMP B-TREE" not in plan, plan


@pytest.mark.parametrize("table", READ_ONLY)
def test_a_list_costs_the_same_number_of_queries_with_many_rows(
    operator: Client, table: str
) -> None:
    address = f"/admin/records/{table}/"
    record(*captures(2))
    operator.get(address)
    with CaptureQueriesContext(connection) as few:
        operator.get(address)
    record(*(make_capture(conversation=f"more{n}") for n in range(60)))

    with CaptureQueriesContext(connection) as many:
        operator.get(address)

    assert len(many) == len(few)


def test_calls_come_newest_first_and_page_without_a_count(operator: Client) -> None:
    record(*captures(60))

    first = operator.get(CALLS)
    second = operator.get(CALLS + "?p=2")

    assert [row.name for row in first.context["cl"].result_list][:2] == ["call-059", "call-058"]
    assert "Rows 1 to 50" in text_of(first)
    assert "Older" in text_of(first)
    assert [row.name for row in second.context["cl"].result_list][-1] == "call-000"
    assert "Rows 51 to 60" in text_of(second)
    assert "Newer" in text_of(second)


@pytest.mark.parametrize("page", ["0", "-1", "999999", "x"])
def test_a_page_that_is_none_leads_back_to_the_list(operator: Client, page: str) -> None:
    assert operator.get(f"{CALLS}?p={page}", follow=True).status_code == 200


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # the whole id
        ("q=call-001", ["call-001"]),
        # its beginning
        ("q=call-00", ["call-003", "call-002", "call-001", "call-000"]),
        # not its middle
        ("q=all-001", []),
        # other letters are another id
        ("q=CALL-001", []),
        # by model, with the search kept
        ("model=acme/m1&q=call-00", ["call-003", "call-001"]),
        # by level
        ("level=healthy", []),
        # a cause none has
        ("cause=refused", []),
        # the reason most have
        ("finish_reason=stop", ["call-003", "call-002", "call-001", "call-000"]),
        # a word that is no level is left out
        ("level=purple", ["call-003", "call-002", "call-001", "call-000"]),
    ],
)
def test_calls_are_found_by_id_and_filters(
    operator: Client, query: str, expected: list[str]
) -> None:
    record(*captures(4))

    assert names(operator, query) == expected


def test_a_list_shows_one_project_at_a_time_the_default_first(operator: Client) -> None:
    other = make_project(slug="other")
    record(make_capture(id="ours"))
    record(make_capture(id="theirs"), project=other)

    assert names(operator) == ["ours"]
    assert names(operator, f"project={other.id}") == ["theirs"]
    assert names(operator, "project=999") == ["ours"]


def test_conversations_are_filtered_by_level_and_found_by_name(operator: Client) -> None:
    record(
        make_capture(conversation="calm", usage={"prompt_tokens": 10}),
        make_capture(conversation="full", usage={"prompt_tokens": 127_000}),
    )
    address = "/admin/records/conversation/"
    level = Conversation.objects.get(name="full").level

    assert names(operator, f"level={level}", address) == ["full"]
    assert names(operator, "q=cal", address) == ["calm"]


@pytest.mark.parametrize("table", READ_ONLY)
def test_records_can_be_neither_added_nor_changed_nor_deleted(operator: Client, table: str) -> None:
    record(*captures(1))
    address = f"/admin/records/{table}/"
    assert operator.get(address + "add/").status_code == 403
    for row in operator.get(address).context["cl"].result_list:
        assert operator.get(f"{address}{row.pk}/change/").status_code == 200
        assert operator.post(f"{address}{row.pk}/change/", {"name": "x"}).status_code == 403
        assert operator.post(f"{address}{row.pk}/delete/", {"post": "yes"}).status_code == 403


def test_models_seen_are_those_of_the_asked_projects_since_a_moment(
    project: ProjectInfo,
) -> None:
    other, silent = make_project(slug="other"), make_project(slug="silent")
    record(
        make_capture(model="old", started_at=NOW - timedelta(days=8)),
        make_capture(model="new", started_at=NOW),
        make_capture(model="new", started_at=NOW - timedelta(days=9)),
    )
    record(make_capture(model="new", started_at=NOW + timedelta(seconds=5)), project=other)

    with CaptureQueriesContext(connection) as ran:
        found = models_seen([project.id, other.id, silent.id], NOW - timedelta(days=7))

    assert [(one.project_id, one.model, one.latest_at) for one in found] == [
        (project.id, "new", NOW),
        (other.id, "new", NOW + timedelta(seconds=5)),
    ]
    assert len(ran) == 1
    assert models_seen([], NOW) == ()


@pytest.mark.parametrize("table", READ_ONLY)
def test_searching_any_list_of_records_answers(operator: Client, table: str) -> None:
    record(*captures(2))

    assert operator.get(f"/admin/records/{table}/?q=c").status_code == 200


@pytest.mark.parametrize("chosen", ["²", "9" * 5000, "-1", "x", "9" * 20])
def test_a_project_that_is_none_shows_the_first_one(operator: Client, chosen: str) -> None:
    record(make_capture(id="call-1"))

    assert names(operator, urlencode({"project": chosen, "q": "call"})) == ["call-1"]
