"""What is learned about a caller: from plans and calls, and steady from call to call."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.answers import to_json
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.plans.defaults import Defaults, caller_defaults
from tests.factories import NOW, make_capture
from tests.plan_rows import make_plan
from tests.recording.support import make_ruled_project, record


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project(payload="full")


def learned(project: ProjectInfo, caller: str = "owner") -> Defaults:
    return caller_defaults(project_id=project.id, caller=caller, now=NOW)


def counts(project: ProjectInfo) -> dict[str, int]:
    return {habit.id: habit.count for habit in learned(project).packs}


def call(
    project: ProjectInfo, pack: str | None, *, days: float = 1, caller: str = "owner", **over: Any
) -> None:
    at = NOW - timedelta(days=days)
    record(project, make_capture(pack=pack, started_at=at, **over), now=at, caller=caller)


def test_the_seeds_shape_is_told(project: ProjectInfo) -> None:
    make_plan(project, "1", entries=("blog.publish", "p.run"), pipelines=("p.run",), days=3)
    make_plan(project, "2", entries=("blog.publish",), learned={"persona": "engineer"}, days=2)
    call(project, "image.generate", days=4)

    told = to_json(learned(project).told(NOW))

    assert told == {
        "scope": "caller=owner",
        "fetched_at": "2026-06-05T14:41:03Z",
        "packs": [
            {
                "id": "blog.publish",
                "calls": 2,
                "last_used_unix": int((NOW - timedelta(days=2)).timestamp()),
                "common_inputs": {"persona": "engineer"},
            },
            {
                "id": "image.generate",
                "calls": 1,
                "last_used_unix": int((NOW - timedelta(days=4)).timestamp()),
            },
        ],
        "pipelines": [
            {
                "id": "p.run",
                "runs": 1,
                "last_used_unix": int((NOW - timedelta(days=3)).timestamp()),
            }
        ],
    }


def test_of_a_stranger_nothing_is_known(project: ProjectInfo) -> None:
    make_plan(project)
    call(project, "blog.publish")
    make_plan(make_ruled_project(slug="other"), caller="stranger")

    found = learned(project, "stranger")

    assert (found.packs, found.pipelines, found.for_prompt()) == ((), (), None)
    told = to_json(found.told(NOW))
    assert (told["packs"], told["pipelines"]) == ([], [])
    assert told["note"]


@pytest.mark.parametrize(
    "over",
    [
        # it came to nothing
        {"outcome": "failed"},
        {"outcome": "running"},
        # nobody carried it out
        {"followed": False},
        # too long ago
        {"days": 30.1},
    ],
)
def test_such_plans_teach_nothing(project: ProjectInfo, over: dict[str, Any]) -> None:
    make_plan(project, **over)

    assert counts(project) == {}


@pytest.mark.parametrize(
    "over",
    [
        # the planner's own calls, by their purpose
        {"purpose": "plan"},
        {"purpose": "route"},
        {"purpose": "filter"},
        # and by their pack
        {"pack": "helmdeck.plan"},
        {"pack": "helmdeck.route"},
        # calls that failed, in either way
        {"status": "error", "http_status": 500, "finish_reason": None, "usage": None},
        {"finish_reason": "stop", "content": ""},
        # of no pack
        {"pack": None},
        # too long ago
        {"days": 30.1},
    ],
)
def test_such_calls_teach_nothing(project: ProjectInfo, over: dict[str, Any]) -> None:
    call(project, **{"pack": "blog.publish", **over})

    assert counts(project) == {}


def test_the_planner_is_no_habit_even_where_a_plan_names_it(project: ProjectInfo) -> None:
    make_plan(project, entries=("helmdeck.plan", "helmdeck.route", "", "blog.publish"))

    assert counts(project) == {"blog.publish": 1}


def test_one_story_is_one_use(project: ProjectInfo) -> None:
    # Planned, and carried out with three calls: used once.
    make_plan(project, "plan-1", entries=("blog.publish", "blog.publish"))
    for _ in range(3):
        call(project, "blog.publish", correlation_id="plan-1")
    # Another story with two calls, and two calls of no story.
    for _ in range(2):
        call(project, "blog.publish", correlation_id="trace-7")
        call(project, "blog.publish")

    assert counts(project) == {"blog.publish": 4}


def test_the_most_frequent_value_is_common_and_the_first_of_two_alike(
    project: ProjectInfo,
) -> None:
    for number, words in enumerate(
        [
            {"theme": "dark", "voice": "low"},
            {"theme": "dark", "voice": "high"},
            {"theme": "bright"},
        ]
    ):
        make_plan(project, str(number), learned=words)

    (habit,) = learned(project).packs

    assert habit.common_inputs == {"theme": "dark", "voice": "high"}


def test_twelve_of_each_are_told_by_count_then_name(project: ProjectInfo) -> None:
    names = [f"tool.{n:02}" for n in range(14)]
    make_plan(project, "1", entries=names)
    make_plan(project, "2", entries=["tool.13"])

    told = to_json(learned(project).told(NOW))

    packs = told["packs"]
    assert isinstance(packs, list)
    assert [pack["id"] for pack in packs] == ["tool.13", *names[:11]]


@pytest.mark.parametrize(
    ("uses", "told"),
    [(1, 1), (2, 2), (4, 2), (5, 5), (9, 5), (10, 10), (19, 10), (20, 20), (60, 50)],
)
def test_the_prompt_tells_rounded_counts(project: ProjectInfo, uses: int, told: int) -> None:
    for _ in range(uses):
        call(project, "blog.publish")

    assert learned(project).for_prompt() == {
        "packs": [{"id": "blog.publish", "calls": told}],
        "pipelines": [],
    }


def test_the_block_of_the_prompt_is_the_same_after_another_call(project: ProjectInfo) -> None:
    # Five and six uses: told as five each, in the order of their names.
    for _ in range(6):
        call(project, "b.tool", days=2)
    for _ in range(5):
        call(project, "a.tool", days=2)
    make_plan(project, entries=("p.run",), pipelines=("p.run",), learned={"theme": "dark"})
    before = learned(project).for_prompt()

    call(project, "b.tool", days=0)
    call(project, "helmdeck.plan", days=0, purpose="plan")

    assert learned(project).for_prompt() == before
    assert before == {
        "packs": [{"id": "a.tool", "calls": 5}, {"id": "b.tool", "calls": 5}],
        "pipelines": [{"id": "p.run", "runs": 1, "common_inputs": {"theme": "dark"}}],
    }


def test_defaults_take_two_queries_along_their_indexes(project: ProjectInfo) -> None:
    for number in range(9):
        make_plan(project, f"p{number}", entries=("a.b", "c.d"))
        call(project, "a.b")

    with CaptureQueriesContext(connection) as ran:
        learned(project)

    assert len(ran) == 2
    if connection.vendor == "sqlite":
        told = ""
        for query in ran:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
                told += " ".join(str(row[-1]) for row in cursor.fetchall())
        assert "plan_by_caller" in told
        assert "call_by_packing_caller" in told
        assert "SCAN" not in told
