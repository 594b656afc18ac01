"""What a Trim dropped and somebody picked later: within the same work, and in time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.plans.picked_later import picked_later
from helmdash.records.access.keyed_hash import hash_intent
from helmdash.records.models import Fit
from tests.factories import NOW, make_capture, make_project, record
from tests.plan_rows import add_attempt, make_plan

HOUR = timedelta(hours=1)
ASKED = "tidy the garden"


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_project()


def make_fit(project: ProjectInfo, name: str = "fit-1", *, at: datetime = NOW, **over: Any) -> Fit:
    """A fit that removed `tool.gone` and `tool.other`."""
    removed = [
        {"id": id, "kind": "pack", "rank": 9, "score": 0.0} for id in ("tool.gone", "tool.other")
    ]
    given: dict[str, Any] = {
        "model": "openai/gpt-4o",
        "intent_sha": hash_intent(project.id, ASKED)[0],
        "catalog_digest": "d",
        "before_bytes": 900,
        "after_bytes": 500,
        "fits": True,
        "trim": {"removed": removed},
        "budget": {},
        "created_at": at,
        **over,
    }
    return Fit.objects.create(project_id=project.id, name=name, **given)


def call(project: ProjectInfo, id: str, **over: Any) -> None:
    given = {"conversation": None, "started_at": NOW + HOUR, **over}
    record(make_capture(id=id, **given), project=project)


def in_conversation(project: ProjectInfo) -> None:
    call(project, "sent", conversation="work", fit_id="fit-1", started_at=NOW)
    call(project, "picks", conversation="work", pack="tool.gone")


def by_correlation(project: ProjectInfo) -> None:
    call(project, "sent", correlation_id="story", fit_id="fit-1", started_at=NOW)
    call(project, "picks", correlation_id="story", pack="tool.gone")


def of_its_plan(project: ProjectInfo) -> None:
    plan = make_plan(project, "plan_1", started_at=NOW - timedelta(minutes=1), intent="else")
    add_attempt(plan, fit_name="fit-1")
    call(project, "picks", correlation_id="plan_1", pack="tool.gone")


def by_a_later_plan(project: ProjectInfo) -> None:
    make_plan(project, "picks", intent=ASKED, entries=("tool.gone",), started_at=NOW + HOUR)


@pytest.mark.parametrize(
    ("arrange", "kind"),
    [
        (in_conversation, "call"),
        (by_correlation, "call"),
        (of_its_plan, "call"),
        (by_a_later_plan, "plan"),
    ],
)
def test_what_is_picked_in_the_same_work_is_told(
    project: ProjectInfo, arrange: Callable[[ProjectInfo], None], kind: str
) -> None:
    fit = make_fit(project)
    arrange(project)

    (found,) = picked_later(project_id=project.id, fit_ids=[fit.pk]).entries

    assert (found.entry, found.dropped, found.picked, found.fit_id) == ("tool.gone", 1, 1, "fit-1")
    assert (found.pick.kind, found.pick.id) == (kind, "picks")


def elsewhere(project: ProjectInfo) -> None:
    call(project, "sent", conversation="work", fit_id="fit-1", started_at=NOW)
    call(project, "picks", conversation="other-work", pack="tool.gone")


def too_late(project: ProjectInfo) -> None:
    call(project, "sent", conversation="work", fit_id="fit-1", started_at=NOW)
    call(project, "picks", conversation="work", pack="tool.gone", started_at=NOW + 25 * HOUR)


def before(project: ProjectInfo) -> None:
    call(project, "picks", conversation="work", pack="tool.gone", started_at=NOW - HOUR)
    call(project, "sent", conversation="work", fit_id="fit-1", started_at=NOW)


def what_stayed(project: ProjectInfo) -> None:
    call(project, "sent", conversation="work", fit_id="fit-1", started_at=NOW)
    call(project, "picks", conversation="work", pack="tool.kept")


def another_intent(project: ProjectInfo) -> None:
    make_plan(project, "picks", intent="paint", entries=("tool.gone",), started_at=NOW + HOUR)


@pytest.mark.parametrize("arrange", [elsewhere, too_late, before, what_stayed, another_intent])
def test_what_is_picked_otherwise_is_not(
    project: ProjectInfo, arrange: Callable[[ProjectInfo], None]
) -> None:
    fit = make_fit(project)
    arrange(project)

    assert picked_later(project_id=project.id, fit_ids=[fit.pk]).entries == ()


def test_entries_are_counted_over_fits_and_led_to_by_the_newest(
    project: ProjectInfo, django_assert_num_queries: Any
) -> None:
    fits = [make_fit(project, f"fit-{n}", at=NOW + n * HOUR) for n in range(3)]
    make_plan(project, "first", intent=ASKED, entries=("tool.gone",), started_at=NOW + HOUR * 1.5)
    make_plan(project, "later", intent=ASKED, entries=("tool.gone",), started_at=NOW + HOUR * 1.7)

    with django_assert_num_queries(5):
        found_of = picked_later(project_id=project.id, fit_ids=[each.pk for each in fits])
        (found,) = found_of.entries

    assert (found.dropped, found.picked, found.fit_id) == (3, 2, "fit-1")
    assert found.pick.id == "first"
    assert (found_of.fits, found_of.is_sample) == (3, False)


def test_fits_that_dropped_more_than_is_read_are_left_out_and_so_it_is_said(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = [make_fit(project, f"fit-{n}", at=NOW + n * HOUR) for n in range(3)]
    make_plan(project, "picks", intent=ASKED, entries=("tool.gone",), started_at=NOW + HOUR * 2.5)
    keys = [each.pk for each in fits]

    monkeypatch.setattr("helmdash.queries.plans.picked_later.MOST_ENTRIES", 4)
    monkeypatch.setattr("helmdash.queries.plans.picked_later.MOST_READ", 1)
    few = picked_later(project_id=project.id, fit_ids=keys)
    monkeypatch.setattr("helmdash.queries.plans.picked_later.MOST_ENTRIES", 0)
    least = picked_later(project_id=project.id, fit_ids=keys)

    (entry,) = few.entries
    assert (entry.dropped, few.fits, least.fits, few.is_sample) == (2, 2, 1, True)
