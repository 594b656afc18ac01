from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import PlanRecord
from tests.admin.forms import text_of
from tests.admin.house import make_project
from tests.plan_rows import add_attempt, make_plan

PLANS = "/admin/records/planrecord/"


def names(client: Client, query: str = "") -> list[str]:
    return [row.name for row in client.get(f"{PLANS}?{query}").context["cl"].result_list]


def test_plans_are_listed_newest_first_for_one_project(
    operator: Client, project: ProjectInfo
) -> None:
    make_plan(project, "old", days=2)
    make_plan(project, "new", days=1)
    other = make_project(slug="other")
    make_plan(other, "theirs")

    assert names(operator) == ["new", "old"]
    assert names(operator, f"project={other.id}") == ["theirs"]
    assert names(operator, "q=ol") == ["old"]
    assert names(operator, "q=ld") == []


def test_the_list_neither_counts_nor_sorts_nor_reads_the_texts(
    operator: Client, project: ProjectInfo
) -> None:
    make_plan(project)

    with CaptureQueriesContext(connection) as ran:
        operator.get(PLANS)

    (page,) = [
        q["sql"]
        for q in ran
        if q["sql"].startswith("SELECT") and 'FROM "records_planrecord"' in q["sql"]
    ]
    assert "COUNT(" not in page
    assert "sketch" not in page
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {page}")
            plan = " ".join(str(row[-1]) for row in cursor.fetchall())
        assert "USE TEMP B-TREE" not in plan, plan


def test_a_plan_is_shown_with_its_steps_and_attempts(
    operator: Client, project: ProjectInfo
) -> None:
    plan = make_plan(project, entries=("blog.publish", ""))
    add_attempt(plan, 1, purpose="filter", reason="The catalog is larger than the model reads.")
    add_attempt(plan, 2)

    page = operator.get(f"{PLANS}{plan.pk}/change/")

    text = text_of(page)
    for said in (
        "blog.publish",
        "made.up",
        "No entry is called that.",
        "The catalog is larger than the model reads.",
    ):
        assert said in text
    assert "Save" not in text
    assert "Sketch" not in text


def test_a_plan_costs_the_same_number_of_queries_with_many_rows(
    operator: Client, project: ProjectInfo
) -> None:
    small = make_plan(project, "small", entries=("a.b",))
    large = make_plan(project, "large", entries=["a.b"] * 20)
    add_attempt(small, 1)
    for number in range(1, 12):
        add_attempt(large, number)
    operator.get(f"{PLANS}{small.pk}/change/")

    with CaptureQueriesContext(connection) as few:
        operator.get(f"{PLANS}{small.pk}/change/")
    with CaptureQueriesContext(connection) as many:
        operator.get(f"{PLANS}{large.pk}/change/")

    assert len(many) == len(few)


@pytest.mark.parametrize("action", ["add/", "{pk}/delete/"])
def test_nobody_adds_or_deletes_plans(operator: Client, project: ProjectInfo, action: str) -> None:
    plan = make_plan(project)

    assert operator.post(PLANS + action.format(pk=plan.pk), {"post": "yes"}).status_code == 403
    assert PlanRecord.objects.count() == 1
