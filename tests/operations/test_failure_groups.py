"""What fails now: groups by cause and model, and what people say of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from helmdash.core.access.permissions import Person
from helmdash.operations.rollups.folding import fold_all
from helmdash.operations.triage import MUTE, mark_failures
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.failures import Failing, FailureGroup, GroupState, failing
from helmdash.records.models import BudgetAlias
from tests.factories import NOW, make_capture, make_project, record

ANN = Person(name="ann", is_superuser=True)
HOUR = timedelta(hours=1)


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_project()


def fail(project: ProjectInfo, at: datetime, status: int = 429, **over: Any) -> None:
    given = {"http_status": status, "finish_reason": None, "usage": None, "started_at": at, **over}
    record(make_capture(**given), project=project)


def say(project: ProjectInfo, group: FailureGroup, state: GroupState, at: datetime) -> None:
    mark_failures(
        actor=ANN,
        project=project,
        cause=group.cause,
        model_key=group.model_key,
        state=state,
        now=at,
    )


def find(project: ProjectInfo, now: datetime = NOW) -> Failing:
    return failing(project_id=project.id, now=now, since=now - 24 * HOUR)


@pytest.mark.parametrize("is_folded", [False, True])
def test_calls_that_fail_are_grouped_by_cause_and_model(
    project: ProjectInfo, is_folded: bool, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    record(make_capture(started_at=NOW), project=project)
    for hours in (2, 5, 30, 47, 48.5):
        fail(project, NOW - hours * HOUR)
    fail(project, NOW - HOUR, model="GPT-4o", provider="openai")
    fail(project, NOW - 3 * HOUR, model="anthropic/claude-sonnet-4")
    fail(project, NOW - 4 * HOUR, status=500)
    if is_folded:
        fold_all()

    find(project)  # which reads the budgets, for the names of models

    with django_assert_max_num_queries(10):
        found = find(project)

    told = [
        (each.cause.value, each.model_key, each.calls, each.before, each.first_at, each.latest_at)
        for each in found.open
    ]
    assert told == [
        ("rate_limited", "openai/gpt-4o", 3, 2, NOW - 5 * HOUR, NOW - HOUR),
        ("rate_limited", "anthropic/claude-sonnet-4", 1, 0, NOW - 3 * HOUR, NOW - 3 * HOUR),
        ("upstream_error", "openai/gpt-4o", 1, 0, NOW - 4 * HOUR, NOW - 4 * HOUR),
    ]
    assert found.calls == sum(each.calls for each in found.open)
    assert (found.settled, found.more, found.has_rollups) == ((), 0, True)


def test_what_is_resolved_comes_back_when_a_call_fails_so_again(project: ProjectInfo) -> None:
    fail(project, NOW - 2 * HOUR)
    (group,) = find(project).open

    say(project, group, GroupState.RESOLVED, NOW - HOUR)
    resolved = find(project)
    fail(project, NOW)
    returned = find(project)

    assert (resolved.open, len(resolved.settled)) == ((), 1)
    (again,) = returned.open
    assert (again.has_returned, again.mark and again.mark.by) == (True, "ann")
    say(project, group, GroupState.OPEN, NOW)
    assert find(project).open[0].mark is None


@pytest.mark.parametrize("is_folded", [False, True])
@pytest.mark.parametrize(
    ("model", "provider"), [("nemo", "my-box"), ("gpt-4o", "azure-eu"), ("gpt-4o", None)]
)
def test_a_group_knows_when_it_failed_whoever_was_asked(
    project: ProjectInfo, model: str, provider: str | None, is_folded: bool
) -> None:
    """A call that names its upstream has a key of that upstream's; the group goes by names."""
    minute = timedelta(minutes=1)
    fail(project, NOW - 70 * minute, model=model, provider=provider)
    fail(project, NOW - 50 * minute, model=model, provider=provider)
    # Further calls of the same cause: another model, and another way to write the same one.
    fail(project, NOW - 90 * minute, model="anthropic/claude-sonnet-4")
    fail(project, NOW - 10 * minute, model="anthropic/claude-sonnet-4", provider=provider)
    fail(project, NOW - 60 * minute, model=model.upper(), provider="another")
    if is_folded:
        fold_all()

    found = find(project).open

    group = next(each for each in found if each.calls == 3)
    assert (group.first_at, group.latest_at) == (NOW - 70 * minute, NOW - 50 * minute)
    say(project, group, GroupState.RESOLVED, NOW - minute)
    assert group.model_key not in [each.model_key for each in find(project).open]
    fail(project, NOW, model=model, provider=provider)
    assert [each.model_key for each in find(project).open if each.has_returned] == [group.model_key]


def test_what_is_muted_comes_back_after_a_day_if_it_still_fails(project: ProjectInfo) -> None:
    fail(project, NOW - 2 * HOUR)
    (group,) = find(project).open

    say(project, group, GroupState.MUTED, NOW)
    fail(project, NOW + HOUR)
    fail(project, NOW + MUTE)

    assert find(project, NOW + HOUR).open == ()
    (later,) = find(project, NOW + MUTE).open
    assert (later.mark and later.mark.state, later.has_returned) == (GroupState.MUTED, False)


@pytest.mark.parametrize("is_folded", [False, True])
def test_a_range_is_counted_exactly_and_beside_the_one_as_long_before_it(
    project: ProjectInfo, is_folded: bool
) -> None:
    minute = timedelta(minutes=1)
    for minutes in (1, 11, 12, 20, 33, 34, 35, 59):
        fail(project, NOW - minutes * minute)
    if is_folded:
        fold_all()

    def told(since: datetime | None, until: datetime | None) -> tuple[object, ...]:
        (group,) = failing(project_id=project.id, now=NOW, since=since, until=until).open
        return group.calls, group.before, group.first_at, group.latest_at

    half, until = NOW - 31 * minute, NOW - 10 * minute
    assert told(half, until) == (3, 3, NOW - 20 * minute, NOW - 11 * minute)
    # A range that is not over yet has the length of what is over of it.
    assert told(half, NOW + 600 * minute) == (4, 4, NOW - 20 * minute, NOW - minute)
    assert told(None, None) == (8, None, NOW - 59 * minute, NOW - minute)
    assert told(NOW - 365 * 24 * HOUR, None)[:2] == (8, 0)


def test_nothing_fails_where_every_call_gave_something(project: ProjectInfo) -> None:
    record(make_capture(started_at=NOW), project=project)

    assert find(project).open == find(project).settled == ()


@pytest.mark.parametrize("state", [GroupState.RESOLVED, GroupState.MUTED])
def test_what_was_said_of_a_group_holds_when_its_model_gets_another_name(
    project: ProjectInfo, state: GroupState
) -> None:
    fail(project, NOW - HOUR, model="resold/gpt-4o", provider=None)
    (group,) = find(project).open
    say(project, group, state, NOW)

    BudgetAlias.objects.create(prefix="resold/", target="openai/")

    found = find(project)
    assert (found.open, [each.model_key for each in found.settled]) == ((), ["openai/gpt-4o"])
    # The newest word counts, by whichever name.
    say(project, found.settled[0], GroupState.OPEN, NOW)
    assert [each.mark for each in find(project).open] == [None]
