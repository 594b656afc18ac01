"""What a rule would have said last week, against what it is said to live."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from helmdash.core.alerts.rules import RuleKind
from helmdash.queries.access import ProjectInfo
from helmdash.queries.alerts.previewing import last_week
from helmdash.queries.alerts.rules import settings_of
from helmdash.records.models import AlertRule
from tests.factories import NOW, make_capture, make_project, record
from tests.operations.alert_support import call, channel, look, rule

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_project()


@pytest.mark.one_database
def test_the_countdowns_of_last_week_are_those_that_rang(project: ProjectInfo) -> None:
    """The same calls minute by minute: what was told live is what the preview says afterwards."""
    made = rule(project, RuleKind.COUNTDOWN, channel(project), threshold=3, group_s=0)
    tokens = [96_000, 99_000, 102_000, 105_000, 111_000, 114_000, 117_000, 119_000, 125_000]
    tokens += [20_000, 104_000, 108_000, 113_000]  # cleared, and filled again
    told = []
    for number in range(60):
        if number < len(tokens):
            call(project, tokens[number], at=NOW + number * MINUTE)
        told += [number] * look(NOW + number * MINUTE + SECOND)

    settings = settings_of(AlertRule.objects.get(pk=made))
    found = last_week(project_id=project.id, settings=settings, now=NOW + timedelta(days=1)).found

    assert found is not None
    assert told == [4, 6, 11, 42]
    assert (found.alerts, found.changes) == (1, 4)
    sent = [(each.at - NOW, each.first) for each in reversed(found.sent)]
    assert sent == [
        (4 * MINUTE, "talk: about 2 generations to critical"),
        (6 * MINUTE, "talk: about 2 generations to critical"),
        (11 * MINUTE, "talk: about 1 generation to critical"),
        (42 * MINUTE, "talk: about 1 generation to critical"),
    ]


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (RuleKind.FAILURE_RATE, {"http_status": 500, "content": None, "latency_ms": 100}),
        (RuleKind.LATENCY, {"latency_ms": 60_000}),
    ],
)
def test_a_week_of_a_models_own_range_is_previewed(
    project: ProjectInfo, kind: RuleKind, bad: dict[str, Any]
) -> None:
    """Ten days of two calls an hour are its range; forty bad calls fire, and then it is over."""
    calm: dict[str, Any] = {"conversation": None, "latency_ms": 100}
    begun = NOW - timedelta(hours=12, minutes=50)
    calls = [
        make_capture(id=f"calm-{number}", started_at=NOW - number * timedelta(minutes=30), **calm)
        for number in range(1, 481)
    ]
    for number in range(40):
        at = begun + timedelta(seconds=10 * number)
        calls.append(make_capture(**{**calm, **bad}, id=f"bad-{number}", started_at=at))
    record(*calls, project=project)
    made = rule(project, kind, channel(project), group_s=0)

    settings = settings_of(AlertRule.objects.get(pk=made))
    found = last_week(project_id=project.id, settings=settings, now=NOW).found

    assert found is not None
    assert (found.alerts, found.changes, found.messages) == (1, 2, 2)
    # Twenty calls are needed; it is over when fewer of the bad ones are left of the half hour.
    over, began = (each.at for each in found.sent)
    assert timedelta(minutes=3) <= began - begun <= timedelta(minutes=5)
    assert timedelta(minutes=31) <= over - begun <= timedelta(minutes=37)
