"""What a rule would have said last week, against what it is said to live."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from helmdash.core.alerts.rules import RuleKind
from helmdash.operations.alerts import noting_lags
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.alerts.previewing import last_week
from helmdash.queries.alerts.rules import settings_of
from helmdash.records.models import (
    AlertRule,
    Exporter,
    LagSample,
    PendingExport,
    RecorderLedger,
)
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
    tokens += [10_000, 40_000, 70_000, 118_000]  # by more than lies between the lines
    tokens += [20_000, 104_000, 108_000, 113_000]  # cleared, and filled again
    told = []
    for number in range(60):
        if number < len(tokens):
            call(project, tokens[number], at=NOW + number * MINUTE)
        told += [number] * look(NOW + number * MINUTE + SECOND)

    settings = settings_of(AlertRule.objects.get(pk=made))
    found = last_week(project_id=project.id, settings=settings, now=NOW + timedelta(days=1)).found

    assert told == [4, 6, 11, 12, 15, 46]
    assert (found.alerts, found.changes) == (1, 6)
    sent = [(each.at - NOW, each.told[0].title) for each in reversed(found.sent)]
    assert sent == [
        (4 * MINUTE, "talk: about 2 generations to critical"),
        (6 * MINUTE, "talk: about 2 generations to critical"),
        (11 * MINUTE, "talk: about 2 generations to critical"),
        (12 * MINUTE, "talk: about 2 generations to critical"),
        (15 * MINUTE, "talk: about 1 generation to critical"),
        (46 * MINUTE, "talk: about 1 generation to critical"),
    ]


def test_a_week_of_a_failing_group_counts_as_its_rule_does(project: ProjectInfo) -> None:
    """One model, however it is written and whichever upstream was asked: one group."""
    made = rule(project, RuleKind.FAILING, channel(project), threshold=5, minutes=15, group_s=0)
    asked = [("gpt-4o", "azure-eu"), ("openai/gpt-4o", None), ("GPT-4o", "azure-us")] * 2
    bad: dict[str, Any] = {"conversation": None, "http_status": 429, "usage": None}
    told = []
    for number in range(30):
        if number < len(asked):
            model, provider = asked[number]
            at = NOW + number * MINUTE
            record(
                make_capture(model=model, provider=provider, started_at=at, **bad), project=project
            )
        told += [number] * look(NOW + number * MINUTE + SECOND)

    settings = settings_of(AlertRule.objects.get(pk=made))
    found = last_week(project_id=project.id, settings=settings, now=NOW + timedelta(days=1)).found

    assert told == [4, 16]
    sent = [(each.at - NOW, each.told[0].title) for each in reversed(found.sent)]
    assert [at for at, _ in sent] == [4 * MINUTE, 16 * MINUTE]
    assert {title for _, title in sent} == {"openai/gpt-4o rate_limited: 5 calls or more"}


@pytest.mark.one_database
def test_the_shares_of_last_week_are_those_that_were_told(project: ProjectInfo) -> None:
    made = rule(project, RuleKind.FULLNESS, channel(project), threshold=70, group_s=0)
    tokens = [60_000, 90_000, 120_000, 30_000, 89_599, 89_600, 10_000]
    told = []
    for number, prompt in enumerate(tokens):
        call(project, prompt, at=NOW + number * MINUTE)
        told += [number] * look(NOW + number * MINUTE + SECOND)

    settings = settings_of(AlertRule.objects.get(pk=made))
    found = last_week(project_id=project.id, settings=settings, now=NOW + timedelta(days=2)).found

    assert told == [1, 3, 5, 6]
    sent = [(each.at - NOW, each.told[0].title) for each in reversed(found.sent)]
    assert sent == [
        (1 * MINUTE, "talk takes 70 % of its limit"),
        (3 * MINUTE, "talk takes 70 % of its limit"),
        (5 * MINUTE, "talk takes 70 % of its limit"),
        (6 * MINUTE, "talk takes 70 % of its limit"),
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

    assert (found.alerts, found.changes, found.messages) == (1, 2, 2)
    # Twenty calls are needed; it is over when fewer of the bad ones are left of the half hour.
    over, began = (each.at for each in found.sent)
    assert timedelta(minutes=3) <= began - begun <= timedelta(minutes=5)
    assert timedelta(minutes=31) <= over - begun <= timedelta(minutes=37)


def test_a_week_of_the_recorders_lag_is_what_its_rule_said(project: ProjectInfo) -> None:
    made = rule(
        project, RuleKind.RECORDER_LAG, channel(project), threshold=50, group_s=0, enabled=True
    )
    ledger = RecorderLedger.objects.create(name="one", started_at=NOW, seen_at=NOW)
    waiting = [0, 0, 49, 50, 900, 51, 12, 0, 0, 50, 0]
    told = []
    for number, calls in enumerate(waiting):
        now = NOW + (number + 1) * MINUTE
        RecorderLedger.objects.filter(pk=ledger.pk).update(waiting=calls)
        noting_lags.note(now=now)
        told += [number + 1] * look(now)

    settings = settings_of(AlertRule.objects.get(pk=made))
    previewed = last_week(project_id=project.id, settings=settings, now=NOW + timedelta(hours=1))

    sent = [(each.at - NOW, each.told[0].title) for each in reversed(previewed.found.sent)]
    assert told == [4, 7, 10, 11]
    assert sent == [
        (4 * MINUTE, "50 calls wait to be stored"),
        (7 * MINUTE, "50 calls wait to be stored"),
        (10 * MINUTE, "50 calls wait to be stored"),
        (11 * MINUTE, "50 calls wait to be stored"),
    ]
    assert previewed.known_from == NOW + MINUTE
    # What does not change is not noted again, but once a day.
    assert LagSample.objects.count() == 9


def test_a_week_of_export_lag_is_what_its_rule_said(project: ProjectInfo) -> None:
    """Of the project's own exporter and of everybody's; a stranger's is not told."""
    stranger = make_project(slug="other")
    for name, of in (("ours", project.id), ("all", None), ("theirs", stranger.id)):
        Exporter.objects.create(name=name, project_id=of, url="https://example.com")
    rows = {each.name: each for each in Exporter.objects.all()}
    for name, since in (("ours", 0), ("all", 3), ("theirs", 0)):
        PendingExport.objects.create(
            exporter=rows[name], project_id=project.id, count=7, calls="[]", at=NOW + since * MINUTE
        )
    made = rule(project, RuleKind.EXPORT_LAG, channel(project), minutes=5, group_s=0)
    told = []
    for number in range(1, 15):
        now = NOW + number * MINUTE
        if number == 12:
            PendingExport.objects.all().delete()
        noting_lags.note(now=now)
        told += [number] * look(now)

    settings = settings_of(AlertRule.objects.get(pk=made))
    found = last_week(project_id=project.id, settings=settings, now=NOW + timedelta(hours=1)).found

    assert told == [5, 8, 12, 12]
    assert [(each.at - NOW, each.told[0].subject) for each in reversed(found.sent)] == [
        (5 * MINUTE, "ours"),
        (8 * MINUTE, "all"),
        (12 * MINUTE, "all"),
        (12 * MINUTE, "ours"),
    ]
    assert found.alerts == 2


def test_lags_are_kept_for_the_week_and_its_beginning(project: ProjectInfo) -> None:
    """A recorder that stayed behind for days: the rule would have begun with the week."""
    ledger = RecorderLedger.objects.create(name="one", started_at=NOW, seen_at=NOW, waiting=70)
    for hour in range(24 * 12):
        noting_lags.note(now=NOW + timedelta(hours=hour))
    now = NOW + timedelta(days=12)
    RecorderLedger.objects.filter(pk=ledger.pk).update(waiting=0)
    noting_lags.note(now=now)
    made = rule(project, RuleKind.RECORDER_LAG, channel(project), threshold=50, group_s=0)

    settings = settings_of(AlertRule.objects.get(pk=made))
    previewed = last_week(project_id=project.id, settings=settings, now=now)

    assert previewed.known_from is None
    assert [each.at for each in previewed.found.sent] == [now, now - timedelta(days=7)]
    # A row a day, nine days long.
    assert LagSample.objects.count() <= 11
