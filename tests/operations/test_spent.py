"""What a conversation took: all its calls, by the prices of today, unknown where nobody told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.core.calls.lanes import Lane
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.conversations import spent as module
from helmdash.queries.conversations.spent import Spent, spent
from helmdash.records.models import Budget
from tests.factories import make_capture
from tests.recording.support import make_ruled_project, record


@pytest.fixture
def project(db: None) -> ProjectInfo:
    project = make_ruled_project()
    Budget.objects.filter(key="openai/gpt-4o").update(
        input_cost_usd_per_mtok=2, output_cost_usd_per_mtok=8, cached_input_cost_usd_per_mtok=1
    )
    budgets.forget_cache()
    return project


def told(project: ProjectInfo) -> Spent:
    prices = budgets.table(project_id=project.id)
    return spent(project_id=project.id, conversation="talk", prices=prices)


def tokens(prompt: int, completion: int, cached: int = 0) -> dict[str, object]:
    part = {"prompt_tokens_details": {"cached_tokens": cached}} if cached else {}
    return {"prompt_tokens": prompt, "completion_tokens": completion, **part}


def test_all_its_calls_are_added_up_by_the_prices_of_their_models(project: ProjectInfo) -> None:
    record(
        project,
        make_capture(usage=tokens(1_000_000, 500_000)),
        make_capture(usage=tokens(400_000, 0, cached=200_000), lane=Lane.SIDE, purpose="title"),
        make_capture(model="acme/tiny", usage=tokens(70, 7)),
        make_capture(usage=None),
        make_capture(conversation="another", usage=tokens(9, 9)),
    )

    found = told(project)

    assert found.cost_usd == pytest.approx(2 + 4 + 0.4 + 0.2)
    assert replace(found, cost_usd=None) == Spent(
        calls=4,
        is_known=True,
        prompt_tokens=1_400_070,
        told=3,
        completion_tokens=500_007,
        answered=3,
        priced=2,
    )


def test_what_nobody_reported_is_unknown(project: ProjectInfo) -> None:
    record(project, make_capture(usage=None))

    assert told(project) == Spent(calls=1, is_known=True)


def test_it_takes_two_queries_and_none_of_very_many_calls(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(project, *(make_capture() for _ in range(4)))
    prices = budgets.table(project_id=project.id)

    with CaptureQueriesContext(connection) as queries:
        spent(project_id=project.id, conversation="talk", prices=prices)
    assert len(queries) == 2

    monkeypatch.setattr(module, "MOST_CALLS", 3)
    assert told(project) == Spent(calls=4, is_known=False)
