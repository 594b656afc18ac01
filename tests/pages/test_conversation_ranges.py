"""Conversations of a range of time: each that overlaps it, in every order. A list that ends long
ago does not look at all that came since."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection

from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations import filters as filters_module
from helmdash.queries.conversations import listing
from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.records.long_lived import LONG
from helmdash.records.models import Conversation
from helmdash.records.statements.bulk import allocate_ids, analyze, insert_rows
from tests.factories import NOW, make_capture
from tests.pages.test_conversation_search import most_rows, statements
from tests.recording.support import record
from tests.support.unanalyzed import forget_statistics

SINCE_THEN, LONG_LIVED = 5_000, 50
# How long they went on: short, about a day, whose measure is none of SQLite's strong points, long.
LASTED = [
    timedelta(0),
    timedelta(minutes=5),
    LONG - timedelta(microseconds=1),
    LONG,
    LONG + timedelta(microseconds=1),
    LONG + timedelta(seconds=1),
    2 * LONG,
    40 * LONG,
]
BEGAN = [NOW - timedelta(hours=hours) for hours in (1, 20, 30, 90, 1_000, 2_000)]
ENDS = [NOW + LONG, NOW, NOW - timedelta(hours=2), NOW - timedelta(hours=40), NOW - 30 * LONG]


def make_talks(
    project: ProjectInfo,
    lasted: list[tuple[datetime, timedelta]],
    *,
    name: str = "talk",
    in_need: int = SINCE_THEN,
) -> None:
    """Conversations that began at some time and went on for so long. Each so manieth needs
    somebody, and the first."""
    record(project, make_capture(id=f"{name}-first", conversation=f"{name}-first", started_at=NOW))
    made = Conversation.objects.filter(name=f"{name}-first")
    like = made.values().get()
    made.delete()
    rows = [
        {
            **like,
            "id": pk,
            "name": f"{name}-{number}",
            "started_at": began,
            "latest_at": began + how_long,
            "attention": 2 if number % in_need == 0 else 0,
        }
        for number, ((began, how_long), pk) in enumerate(
            zip(lasted, allocate_ids(Conversation, len(lasted)), strict=True)
        )
    ]
    insert_rows(Conversation, rows)


def pages_of(project: ProjectInfo, filters: ConversationFilters, sort: str) -> list[str]:
    """The ids of all pages, of seven rows each."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = listing.page(
            project_id=project.id, filters=filters, cursor=cursor, limit=7, sort=sort
        )
        found += [each.id for each in page.items]
        cursor = page.next
        if cursor is None:
            return found


def expected(sort: str, since: datetime | None, until: datetime) -> list[str]:
    overlapping = [
        row
        for row in Conversation.objects.all()
        if row.started_at < until and (since is None or row.latest_at >= since)
    ]
    overlapping.sort(key=lambda row: (row.latest_at, row.pk), reverse=sort != listing.OLDEST)
    if sort == listing.ATTENTION:
        overlapping.sort(key=lambda row: -row.attention)
    return [row.name for row in overlapping]


@pytest.mark.parametrize("sort", [listing.NEWEST, listing.OLDEST, listing.ATTENTION])
def test_a_range_has_each_that_overlaps_it_once_in_order(project: ProjectInfo, sort: str) -> None:
    make_talks(project, [(began, lasted) for began in BEGAN for lasted in LASTED], in_need=3)
    for until in ENDS:
        for since in (None, until - timedelta(hours=3), until - 20 * LONG):
            wanted = expected(sort, since, until)
            filters = ConversationFilters(since=since, until=until)

            assert pages_of(project, filters, sort) == wanted
            # By the same rows, and five statements for each.
            for above, below in pairwise(wanted if since is None else ()):
                beside = listing.neighbours(
                    project_id=project.id, filters=filters, conversation_id=above, sort=sort
                )
                assert beside.after == below


@pytest.mark.parametrize("sort", [listing.NEWEST, listing.OLDEST, listing.ATTENTION])
@pytest.mark.parametrize("is_analyzed", [False, True])
def test_a_list_that_ends_long_ago_leaves_out_what_came_since(
    project: ProjectInfo, sort: str, is_analyzed: bool
) -> None:
    day = timedelta(days=100)
    make_talks(project, [(NOW - day, timedelta(0))] * 60, name="wanted")
    since_then = [(NOW - timedelta(minutes=n), timedelta(minutes=2)) for n in range(SINCE_THEN)]
    make_talks(project, since_then, name="since")
    make_talks(project, [(NOW - day, day + timedelta(hours=1))] * LONG_LIVED, name="long")
    if is_analyzed:
        analyze()
    else:
        forget_statistics(Conversation)
    filters = ConversationFilters(until=NOW - day + timedelta(hours=1))

    with statements() as ran:
        found = listing.page(project_id=project.id, filters=filters, limit=100, sort=sort)

    assert len(found.items) == 100
    for statement, params in ran:
        assert not (wrong := too_much(statement, params)), wrong


@pytest.mark.parametrize("sort", [listing.NEWEST, listing.OLDEST])
def test_a_search_that_ends_long_ago_tries_those_of_its_time(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch, sort: str
) -> None:
    """So many for a page; the others since then are not among them."""
    monkeypatch.setattr(filters_module, "MOST_TRIED", 10)
    make_talks(project, [(began, lasted) for began in BEGAN for lasted in LASTED], in_need=3)
    filters = ConversationFilters(q="alk-1", until=ENDS[-1])
    wanted = [name for name in expected(sort, None, ENDS[-1]) if "alk-1" in name]

    assert pages_of(project, filters, sort) == wanted
    make_talks(project, [(NOW, timedelta(0))] * SINCE_THEN, name="since")
    analyze()
    with statements() as ran:
        assert pages_of(project, filters, sort) == wanted
    if connection.vendor == "postgresql":
        assert max(most_rows(*each) for each in ran) <= len(BEGAN) * len(LASTED)


def too_much(statement: str, params: Any) -> str:
    """What shows that a statement looks at what came since; "" where nothing does."""
    if connection.vendor == "postgresql":
        most = most_rows(statement, params)
        return "" if most <= 60 + LONG_LIVED + 101 else f"{most} rows: {statement}"
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}", params)
        plan = str(cursor.fetchall())
    narrow = ("long_conversation_by_time", "latest_at<?", "attention>?")
    return "" if any(each in plan for each in narrow) else f"{plan}: {statement}"
