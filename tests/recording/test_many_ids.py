"""Rows by many ids: the same ones, however many are asked for."""

from __future__ import annotations

import pytest
from django.db import connection

from helmdash.queries.access import ProjectInfo
from helmdash.records.many_ids import one_of
from helmdash.records.models import Call
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


def test_on_postgresql_many_ids_are_one_parameter(project: ProjectInfo) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite reads a list as quickly")

    statement, parameters = Call.objects.filter(one_of("id", range(500))).query.sql_with_params()

    assert "= ANY(%s)" in statement
    assert len(parameters) == 1
