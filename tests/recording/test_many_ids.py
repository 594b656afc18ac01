"""Rows by many ids: the same ones, however many are asked for."""

from __future__ import annotations

import pytest
from django.db import connection

from helmdash.queries.access.access import ProjectInfo
from helmdash.records.call_names import Place, payloads_at
from helmdash.records.models import Call
from helmdash.records.statements.many_ids import one_of
from tests.factories import make_capture, make_project, record


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_project()


@pytest.mark.parametrize("others", [0, 5, 5_000])
def test_rows_are_found_by_few_and_by_many_ids(project: ProjectInfo, others: int) -> None:
    for number in range(3):
        record(make_capture(id=f"c{number}"), project=project)
    first, second, _ = Call.objects.order_by("id").values_list("id", flat=True)
    absent = range(second + 10, second + 10 + others)

    rows = Call.objects.filter(one_of("id", [first, second, *absent]), project_id=project.id)

    assert set(rows.values_list("name", flat=True)) == {"c0", "c1"}
    assert not rows.filter(one_of("id", list(absent))).exists()


@pytest.mark.parametrize("others", [0, 500])
def test_what_hangs_on_calls_is_found_by_few_and_by_many(project: ProjectInfo, others: int) -> None:
    for number in range(3):
        record(make_capture(id=f"c{number}", metadata={"step": 1}), project=project)
    places = [Place(*each) for each in Call.objects.values_list("id", "started_at")[:2]]
    absent = [Place(places[0].call_id + 100 + n, places[0].started_at) for n in range(others)]

    assert payloads_at(project.id, [*places, *absent]).count() == 2


def test_many_ids_are_one_parameter(project: ProjectInfo) -> None:
    """Of a list each number is a parameter: for 10,000 ids Django took a quarter of a second."""
    statement, parameters = Call.objects.filter(one_of("id", range(500))).query.sql_with_params()

    assert ("= ANY(%s)" if connection.vendor == "postgresql" else "json_each(%s)") in statement
    assert len(parameters) == 1
