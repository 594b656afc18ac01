"""What became of plans: by model and variant, by intent, and which calls carried out which step."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from helmdash.queries import plans
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.plans import PlanTotal
from tests.factories import NOW, make_capture, record
from tests.pages.hygiene import faults
from tests.plan_rows import make_plan


def text_of(html: str) -> str:
    """The page as people read it, blanks made one."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html.split("<main")[1])).split())


@pytest.fixture
def history(project: ProjectInfo) -> ProjectInfo:
    """Ten plans of one model, of which the newer ones do better, and three of another."""
    for n in range(10):
        outcome = "ok" if n < 4 or n == 7 else "gap" if n == 4 else "failed"
        make_plan(
            project,
            f"plan-{n}",
            days=1 + n,
            intent="mend the billing",
            outcome=outcome,
            latency_ms=1_000 + n * 100,
        )
    for n in range(3):
        make_plan(
            project,
            f"other-{n}",
            days=20 + n,
            model="small/model",
            prompt_variant="single_pick",
            latency_ms=None,
            outcome="partial",
        )
    return project


def totals(**asked: Any) -> plans.PlanTotals | None:
    return plans.totals(plans.newest_plans(**asked), **asked)


def test_totals_tell_outcomes_trend_and_latency(history: ProjectInfo) -> None:
    found = totals(project_id=history.id, now=NOW)

    assert found is not None
    assert (found.all.plans, found.all.ok, found.all.failed, found.all.partial) == (13, 5, 4, 3)
    first, second = found.groups
    assert (first.model, first.plans, first.gap, first.latency_ms) == ("openai/gpt-4o", 10, 1, 1450)
    assert (first.earlier, first.later) == (0.2, 0.8)
    # Three plans tell no trend, and none of them says how long it took.
    assert (second.variant, second.earlier, second.later) == ("single_pick", None, None)
    assert second.latency_ms is None
    assert (found.intents, found.is_sample) == (2, False)
    assert totals(project_id=history.id, now=NOW, outcome="running") is None


# Filters that rollups carry, and how many plans fit them.
CARRIED = [
    ({}, 14),
    ({"model": "small/model"}, 3),
    ({"outcome": "failed"}, 5),
    ({"variant": "full_steps", "kind": "plan"}, 11),
    ({"since": NOW - timedelta(days=4, minutes=1)}, 5),
]


@pytest.mark.parametrize(("filters", "plans_there"), CARRIED)
def test_totals_of_more_plans_than_are_read_are_of_all_of_them(
    history: ProjectInfo,
    monkeypatch: pytest.MonkeyPatch,
    filters: dict[str, Any],
    plans_there: int,
) -> None:
    """Read from the rows, then counted by rollups: a plan whose server is gone as well."""
    make_plan(history, "stalled", outcome="running", latency_ms=None)
    exact = totals(project_id=history.id, now=NOW, **filters)
    monkeypatch.setattr("helmdash.queries.plans.newest.MOST_READ", 2)

    found = totals(project_id=history.id, now=NOW, **filters)

    assert exact is not None
    assert found is not None
    assert (found.all.plans, found.is_sample, found.intents_of) == (plans_there, False, 2)

    def counts(total: PlanTotal) -> tuple[object, ...]:
        named = (total.model, total.kind, total.variant)
        return (*named, total.plans, total.ok, total.gap, total.partial, total.failed)

    assert list(map(counts, found.groups)) == list(map(counts, exact.groups))
    # Times are not counted by outcome, and then told of those that were read.
    is_timed = "outcome" not in filters
    assert found.latency_of == (None if is_timed else 2)
    timed = (found.all, *found.groups) if is_timed else ()
    for told, known in zip(timed, (exact.all, *exact.groups), strict=is_timed):
        assert told.latency_ms == (known.latency_ms and pytest.approx(known.latency_ms, rel=0.005))
    series = plans.plan_series(project_id=history.id, now=NOW, **filters)
    assert series is not None
    assert sum(bar.calls or 0 for bar in series.bars) == plans_there
    assert sum(bar.parts.get("failed", 0) for bar in series.bars) == exact.all.failed
    # What rollups do not carry is told of the newest, and says so.
    sample = totals(project_id=history.id, now=NOW, caller="owner", **filters)
    assert sample is not None
    assert (sample.all.plans, sample.is_sample) == (2, True)


def test_a_plan_that_stalled_counts_as_failed_and_one_that_runs_as_neither(
    project: ProjectInfo,
) -> None:
    make_plan(project, "stalled", outcome="running", latency_ms=None)
    make_plan(project, "runs", outcome="running", latency_ms=None, started_at=NOW)

    found = totals(project_id=project.id, now=NOW + timedelta(minutes=1))

    assert found is not None
    assert (found.all.plans, found.all.failed, found.all.ok) == (2, 1, 0)


def test_the_list_says_what_became_of_its_plans(viewer: Client, history: ProjectInfo) -> None:
    html = viewer.get("/plans/").content.decode()

    assert faults(html) == []
    said = text_of(html)
    assert "all plans of the range · 2 different intents" in said
    assert "openai/gpt-4o full_steps 10 5 50 % 1 0 4 20 % → 80 %" in said
    # A model that failed leads to its plans; figures follow the filters.
    link = unescape(re.findall(r'href="(/plans/\?model=small[^"]*)"', html)[0])
    assert "small/model single_pick 3" in text_of(viewer.get(link).content.decode())


def test_each_total_leads_to_the_plans_that_it_counts(viewer: Client, project: ProjectInfo) -> None:
    make_plan(project, "asked")
    make_plan(project, "no-call", prompt_variant="")
    make_plan(project, "route", kind="route")
    make_plan(project, "route-2", kind="route", prompt_variant="")

    html = viewer.get("/plans/").content.decode()

    links = re.findall(
        r'title="openai/gpt-4o" href="([^"]*)".*?class="num"[^>]*>(\d+)<', html, re.S
    )
    assert [plans for _, plans in links] == ["2", "1", "1"]
    for link, count in links:
        listed = viewer.get(unescape(link)).content.decode()
        assert len(re.findall('data-row="', listed)) == int(count), link


def test_plans_that_ask_for_the_same_are_one_row(viewer: Client, history: ProjectInfo) -> None:
    html = viewer.get("/plans/", {"by": "intent"}).content.decode()

    assert faults(html) == []
    rows = re.findall(r'href="/plans/\?intent=(\w{16})&amp;project=default"', html)
    assert len(rows) == 2
    same = viewer.get("/plans/", {"intent": rows[0]}).content.decode()
    assert len(re.findall(r'data-row="plan-\d"', same)) == 10


def test_a_step_leads_to_the_calls_that_carried_it_out(
    viewer: Client, project: ProjectInfo
) -> None:
    make_plan(project, "plan_1", entries=("blog.write", "blog.publish"))
    did = {"conversation": None, "correlation_id": "plan_1", "started_at": NOW}
    record(
        make_capture(id="wrote", pack="blog.write", purpose="tool", **did),
        make_capture(id="planned", pack="blog.write", purpose="plan", **did),
        make_capture(id="other-work", pack="blog.write", **{**did, "correlation_id": "plan_2"}),
        project=project,
    )

    html = viewer.get("/plans/plan_1/").content.decode()

    steps = html.split('<ol class="steps">')[1].split("</ol>")[0].split("</li>")
    assert re.findall(r'href="/calls/([^/]+)/', steps[0]) == ["wrote"]
    assert "Carried out by" not in steps[1]
