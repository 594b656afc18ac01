"""Malformed answers through the whole story: an answer, a part of one, or a cause that is kept."""

from __future__ import annotations

from typing import Any

import pytest

from helmdash.operations.planning import PlanFailed
from helmdash.records.models import Call, PlanRecord
from tests.core.malformed import CATALOG, Expected, plan_rows, route_rows
from tests.factories import make_project
from tests.planning.telling import Replies, tell

# What is stored of a plan is asked of both databases by the tests beside this one.
pytestmark = pytest.mark.one_database

KINDS = sorted({row.kind for row in plan_rows()})
# What each answer is read as is told by tests/core: of the whole story, which takes 20 ms, some.
_STORIES = 8
# Of any model whose budget asks for all steps.
MODEL = "openrouter/meta-llama/llama-3.3-70b-instruct"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["plan", "route"])
def test_no_answer_is_silent(db: None, task: str, kind: str) -> None:
    project = make_project()
    rows = [row for row in (plan_rows() if task == "plan" else route_rows()) if row.kind == kind]
    assert len(rows) >= 20

    for row in rows[:: len(rows) // _STORIES]:
        replies = Replies([{"content": row.raw, "finish_reason": row.finish_reason}])
        body = _told(project, replies, task)
        plan = PlanRecord.objects.latest("id")
        if row.expected is Expected.FAILURE:
            assert body is None, row
            assert (plan.outcome, bool(plan.cause)) == ("failed", True), row
        else:
            assert body is not None, row
            assert body.get("partial", False) is (row.expected is Expected.PARTIAL), row
            assert _ids(body) == list(row.ids), row
        assert Call.objects.filter(correlation_id=plan.name).count() == len(replies.sent)


def _told(project: Any, replies: Replies, task: str) -> Any:
    try:
        return tell(project, replies, kind=task, catalog=CATALOG, model=MODEL).body
    except PlanFailed:
        return None


def _ids(body: Any) -> list[str]:
    if "recommendation" in body:
        return [body["recommendation"]["id"]]
    return [step["tool"] for step in body["steps"]]
