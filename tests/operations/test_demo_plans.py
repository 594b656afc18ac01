"""The demo project's plans: there is something of each kind to look at, and it goes again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.whatif.calls import Judge
from helmdash.core.whatif.fits import ReplayedFit
from helmdash.operations.demo.loading import load_demo, remove_demo
from helmdash.queries import plans
from helmdash.queries.budgets import budgets
from helmdash.queries.models import model_rows, recent_calls
from helmdash.queries.whatif import walks
from helmdash.records.models import Call, PlanAttempt, PlanCatalog, PlanRecord, PlanStep, Project
from tests.factories import NOW, make_project

ADR_MODEL = "openrouter/nvidia/nemotron-3-super-120b-a12b:free"


@pytest.fixture
def demo(db: None) -> int:
    """The id of the loaded demo project."""
    make_project()
    load_demo(actor=SHELL, now=NOW)
    return Project.objects.get(slug="demo").pk


def test_there_are_plans_of_every_kind(demo: int) -> None:
    items = plans.page(project_id=demo, now=NOW).items

    assert len(items) == 8
    assert {item.outcome for item in items} == {"ok", "gap", "partial", "failed"}
    assert {item.prompt_variant for item in items} == {"full_steps", "single_pick"}
    assert {item.kind for item in items} == {"plan", "route"}
    assert {item.followed for item in items} == {None, True}
    assert all(item.at <= NOW for item in items)


def test_every_plan_can_be_opened_with_its_attempts_and_catalog(demo: int) -> None:
    for item in plans.page(project_id=demo, now=NOW).items:
        found = plans.find(project_id=demo, plan_id=item.id, now=NOW)

        assert found is not None
        assert found.attempts
        assert found.catalog
        assert found.trim
        assert (found.problem is None) is (item.outcome != "failed")
        assert (found.result is None) is (item.outcome == "failed")
        known = Call.objects.filter(name__in=[each.call_id for each in found.attempts])
        assert known.count() == len(found.attempts)
        # Filter passes aside, every try but the last came to nothing; the last as the plan did.
        tries = [each for each in found.attempts if each.purpose != "filter"]
        assert all(each.cause for each in tries[:-1])
        assert (tries[-1].cause is None) is (item.outcome in ("ok", "gap"))


def test_a_chain_and_like_plans_are_there_to_see(demo: int) -> None:
    found = plans.find(project_id=demo, plan_id="plan_demo-5", now=NOW)

    assert found is not None
    assert [link.id for link in found.chain] == ["plan_demo-4", "plan_demo-5"]
    assert plans.similar(project_id=demo, plan_id="plan_adr-053-1", now=NOW)


def test_adr_053_is_told_right(demo: int) -> None:
    rows = {row.purpose: row for row in model_rows(project_id=demo).rows if row.model == ADR_MODEL}
    recent = recent_calls(project_id=demo, model=ADR_MODEL)

    assert (rows["filter"].truncated.count, rows["filter"].calls) == (2, 3)
    stories = [call for call in recent if (call.correlation_id or "").startswith("plan_adr")]
    assert [call.purpose for call in stories] == ["filter", "plan"] * 3


def test_the_demo_plans_have_a_variant_and_plausible_sizes(demo: int) -> None:
    rows = model_rows(project_id=demo).rows

    assert [row.model for row in rows if row.purpose == "plan" and not row.prompt_variant] == []
    adr = [row for row in rows if row.model == ADR_MODEL and row.purpose == "plan"]
    assert [(row.clean.count, row.calls) for row in adr] == [(3, 3)]
    told = {(row.model, row.purpose): row.estimate_ratio for row in rows if row.estimate_ratio}
    assert ("openai/gpt-4o", "chat") in told
    assert {key: ratio for key, ratio in told.items() if not 0.7 < ratio < 1.5} == {}


def test_what_the_filter_passes_of_adr_053_did_is_in_the_trims(demo: int) -> None:
    told = []
    for number in (1, 2, 3):
        found = plans.find(project_id=demo, plan_id=f"plan_adr-053-{number}", now=NOW)
        assert found is not None
        trim: Any = found.trim
        told.append(trim["dropped"][len(trim["steps"]) :])

    # The first and the third were truncated: nothing was picked.
    doubt = "lexical.low_confidence"
    assert told == [[doubt], [doubt, "llm_filter(picks=4,kept=4)"], [doubt]]


def test_loading_again_gives_the_same_and_removing_leaves_nothing(demo: int) -> None:
    first = list(PlanAttempt.objects.order_by("call_name").values_list("call_name", "cause"))
    load_demo(actor=SHELL, now=NOW)

    again = list(PlanAttempt.objects.order_by("call_name").values_list("call_name", "cause"))
    # helmdeck ADR 053's calls get a new name each time.
    named = [row for row in first if row[0].startswith("plan_demo-")]
    assert named == [row for row in again if row[0].startswith("plan_demo-")]
    assert len(first) == len(again)
    assert remove_demo(actor=SHELL)
    for model in (PlanRecord, PlanStep, PlanAttempt, PlanCatalog, Call):
        assert not model.objects.exists()


def test_what_a_what_if_makes_again_comes_out_as_it_is_stored(demo: int) -> None:
    table = budgets.table(project_id=demo)
    span = walks.Span(project_id=demo, since=None, until=NOW + timedelta(days=1))

    found, _ = walks.fit_step(span, Judge(table, table), (), most=100)

    made = [each for _, each in found if isinstance(each, ReplayedFit)]
    assert made
    assert all(each.is_as_recorded for each in made)
