"""The bars above lists without rollups: every row in one, and older ones as estimates."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.pages.lists import list_bars
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls.list_series import list_series
from helmdash.queries.conversations import over_time
from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.records.models import Conversation, Fit, RollupState, UncountedCalls
from tests.factories import NOW, make_capture, record
from tests.pages.hygiene import faults
from tests.plan_rows import make_plan

HOURS = (1, 1, 2, 30)


@pytest.fixture
def busy(project: ProjectInfo, filled: str) -> ProjectInfo:
    """Two days of conversations and plans, beside what `filled` brings."""
    now = timezone.now()
    for number, hours in enumerate(HOURS):
        at = now - timedelta(hours=hours)
        record(make_capture(conversation=f"c{number}", started_at=at), project=project)
        make_plan(project, f"made-{number}", started_at=at, outcome="failed" if number else "ok")
    return project


@pytest.mark.parametrize("path", ["/conversations/", "/plans/", "/trims/"])
def test_bars_above_a_list_hold_what_it_lists_and_lead_to_their_stretch(
    owner: Client, busy: ProjectInfo, path: str
) -> None:
    for query in ({}, {"range": "3h"}, {"range": "all", "model": "openai/gpt-4o"}):
        html = owner.get(path, query).content.decode()

        assert faults(html) == []
        rows = html.count(" data-row")
        told = re.findall(r"<strong>([\d,]+)</strong> (?:conversation|plan|fit)s?", html)
        assert told == ([str(rows)] if rows else []), (path, query)
        bars = re.findall(r'href="[^"]*range=([^"&]*)[^"]*" data-range="([^"]*)" tabindex', html)
        assert bars or not rows
        counted = sum(
            int(n)
            for n in re.findall(r'aria-label="[^"]*: (\d+) (?:conversation|plan|fit)s?\b', html)
        )
        assert counted == rows


def test_bars_of_failed_calls_say_that_their_colors_are_levels(
    owner: Client, project: ProjectInfo
) -> None:
    """A failed call is often healthy: green bars of failures looked like a mistake."""
    record(make_capture(finish_reason="length", content=""), project=project)

    html = owner.get("/calls/", {"cause": "any"}).content.decode()

    assert "<strong>1</strong> call by the level of its prompt" in html


def test_bars_that_reach_over_the_range_of_calls_say_so(
    owner: Client, project: ProjectInfo
) -> None:
    """Rollups fill whole bars; a sum above the list that it does not have looked like a mistake."""
    for name, at in (("long", NOW - timedelta(days=30)), ("near", NOW - timedelta(hours=1))):
        record(make_capture(id=name, started_at=at), project=project)

    def above(**asked: datetime) -> str:
        html = owner.get("/calls/", {name: at.isoformat() for name, at in asked.items()})
        return html.content.decode().partition("<figcaption>")[2].partition("</figcaption>")[0]

    cut = above(since=NOW - timedelta(days=31), until=NOW - timedelta(minutes=67))
    hour = NOW.replace(minute=0, second=0)
    whole = above(since=hour - timedelta(hours=2), until=hour)

    assert "<strong>1</strong> call " in whole
    assert ("outer bars" in cut, "outer bars" in whole) == (True, False)


def test_calls_that_are_not_counted_yet_are_not_said_to_be_none(
    owner: Client, project: ProjectInfo
) -> None:
    """As after an upgrade from before rollups: `0 calls` stood above a list of thousands."""
    record(make_capture(), project=project)
    UncountedCalls.objects.all().delete()
    RollupState.objects.create(project_id=project.id, is_complete=False)

    for path in ("/", "/calls/"):
        html = owner.get(path, {"range": "all"}).content.decode()
        above = html.partition("<figcaption>")[2].partition("</figcaption>")[0]
        assert "not counted yet" in above.partition("</strong>")[0]
        assert "<strong>0</strong>" not in above
        assert faults(html) == []


def test_a_list_without_anything_has_no_bars(owner: Client, project: ProjectInfo) -> None:
    for path in ("/conversations/", "/plans/", "/trims/"):
        assert "<figure" not in owner.get(path).content.decode()


def test_what_changed_the_rules_is_marked_on_every_axis(owner: Client, busy: ProjectInfo) -> None:
    owner.post("/budgets/of-call/talk-1/", {"window": "64000", "do": "save"})

    for path in ("/calls/", "/conversations/", "/plans/", "/trims/"):
        html = owner.get(path, {"range": "24h"}).content.decode()
        assert 'class="mark mark-budget"' in html, path


def test_totals_of_the_newest_fits_that_match_say_that_they_are_an_estimate(
    owner: Client, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("helmdash.queries.fitting.trims.MOST_READ", 1)
    older = Fit.objects.get(name=filled)
    older.pk, older.name, older.created_at = None, "older", older.created_at - timedelta(hours=1)
    older.save()

    html = owner.get("/trims/", {"range": "all", "model": older.model}).content.decode()

    assert faults(html) == []
    assert "an estimate: of the newest 1 fits" in html


def test_rows_that_were_not_read_are_estimated_by_the_calls(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls to a conversation, at any time: and that is what is estimated."""
    monkeypatch.setattr("helmdash.queries.conversations.over_time.MOST_COUNTED", 4)
    monkeypatch.setattr("helmdash.queries.conversations.over_time.MOST_LISTED", 4)
    monkeypatch.setattr("helmdash.queries.calls.list_series.MOST_LISTED", 4)
    for hours in range(10):
        at = NOW - timedelta(hours=hours)
        talk = make_capture(conversation=f"c{hours}", started_at=at)
        record(talk, talk, project=project)

    def none() -> datetime | None:
        raise AssertionError("not asked for where the range says it")

    def bars(since: datetime | None, first_at: Callable[[], datetime | None]) -> list[object]:
        filters = ConversationFilters(since=since)
        found = list_series(
            over_time.newest_moments(project_id=project.id, filters=filters),
            project_id=project.id,
            since=since,
            until=None,
            now=NOW,
            first_at=first_at,
        )
        return [(bar.calls, bar.is_estimate) for bar in found.bars if bar.calls]

    assert bars(NOW - timedelta(hours=9), none) == [(1, True)] * 6 + [(1, False)] * 4
    first = Conversation.objects.order_by("latest_at").values_list("latest_at", flat=True)[0]
    assert bars(None, lambda: first) == [(1, True)] * 6 + [(1, False)] * 4
    assert over_time.first_moment(project_id=project.id) == first


@pytest.mark.parametrize("words", [list_bars._LEVELS, list_bars._TRIMS, list_bars._PLANS])
def test_parts_of_a_bar_are_told_apart_by_their_look(words: list_bars.Words) -> None:
    assert len({css_class for css_class, _ in words.values()}) == len(words)
