"""A range of time and a place within it: the statements of a list say the narrower bound alone.

SQLite looks for rows by the first of two bounds on one side, and tries the other on each of them:
the last page of a range would take longer the more there is in the range.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from helmdash.core.text.query_terms import parse_query
from helmdash.queries import plans
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import facets as call_facets
from helmdash.queries.calls import filters as call_filters
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls import series
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.conversations import facets as conversation_facets
from helmdash.queries.conversations import filters as conversation_filters
from helmdash.queries.conversations import listing, over_time
from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.queries.fitting import trims
from helmdash.queries.fitting.trim_filters import TrimFilters
from helmdash.queries.plans import filters as plan_filters
from helmdash.queries.plans.filters import PLAN_TERMS
from helmdash.records.bounds import bounded
from helmdash.records.models import Call
from tests.factories import NOW
from tests.plan_rows import make_plan

CHUNKS = [
    "helmdash.queries.calls.listing._EXPORT_CHUNK",
    "helmdash.queries.conversations.listing._CHUNK",
    "helmdash.queries.plans.listing._CHUNK",
    "helmdash.queries.fitting.trims._EXPORT_CHUNK",
]
NAMES = {"gt": "gt", "gte": "ge", "lt": "lt", "lte": "le"}
BOUND = re.compile(r'("\w+"\."\w+_at") (>|<)=? %s')


def said_twice(statement: str) -> Iterator[str]:
    """Columns of time, and on which side they are bounded by two conditions that both must hold."""
    _, _, rest = statement.partition(" WHERE ")
    flat = rest.removeprefix("(")
    # Within parentheses are alternatives, exceptions, and statements of their own.
    while (less := re.sub(r"\([^()]*\)", "", flat)) != flat:
        flat = less
    said = Counter(BOUND.findall(flat.partition(")")[0]))
    yield from (" ".join(bound) for bound, times in said.items() if times > 1)


@contextmanager
def statements() -> Iterator[list[str]]:
    ran: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        ran.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield ran


BESIDE: dict[str, Callable[[dict[str, Any]], object]] = {
    "calls": lambda asked: (
        call_facets.facets(**asked),
        series.call_series(**asked, now=timezone.now(), split=series.Split.LEVEL),
    ),
    "conversations": lambda asked: (
        conversation_facets.facets(**asked),
        over_time.newest_moments(**asked),
    ),
    "plans": lambda asked: plans.facets(**asked),
    "trims": lambda asked: trims.facets(**asked),
}


# Where a list is read, and what its items are asked for by.
QUERIES: dict[str, tuple[Any, str]] = {
    "calls": (call_listing, "call_id"),
    "conversations": (listing, "conversation_id"),
    "plans": (plans, "plan_id"),
    "trims": (trims, "fit_id"),
}


def read_list(noun: str, asked: dict[str, Any], sort: str) -> int:
    """All pages of a list, what is beside each of its rows, and its file; gives how many rows."""
    module, name = QUERIES[noun]
    cursor, rows = None, 0
    while True:
        found = module.page(**asked, sort=sort, cursor=cursor, limit=1)
        for each in found.items:
            module.neighbours(**asked, **{name: each.id}, sort=sort)
        rows += len(found.items)
        cursor = found.next
        if cursor is None:
            return min(rows, len(list(module.export(**asked, sort=sort))))


def of_calls(**over: Any) -> Callable[[datetime, datetime], dict[str, Any]]:
    return lambda since, until: {"filters": CallFilters(since=since, until=until, **over)}


def of_conversations(**over: Any) -> Callable[[datetime, datetime], dict[str, Any]]:
    return lambda since, until: {"filters": ConversationFilters(since=since, until=until, **over)}


LISTS = [
    ("calls", of_calls()),
    ("calls", of_calls(tokens_over=0)),
    ("calls", of_calls(q="talk")),
    ("calls", of_calls(cause="any", purpose="plan")),
    ("conversations", of_conversations()),
    ("conversations", of_conversations(q="l")),
    ("conversations", of_conversations(is_one_shot=True)),
    (
        "plans",
        lambda since, until: {
            "since": since,
            "until": until,
            "now": until,
            "terms": parse_query("steps:>=0", PLAN_TERMS.fields).terms,
        },
    ),
    ("trims", lambda since, until: {"filters": TrimFilters(since=since, until=until)}),
]


ORDERS = {
    "calls": (listing.NEWEST, listing.OLDEST, "-prompt"),
    "conversations": (listing.NEWEST, listing.OLDEST, listing.ATTENTION, "-calls"),
    "plans": (listing.NEWEST, listing.OLDEST, "-steps"),
    "trims": (listing.NEWEST, listing.OLDEST, "-saved"),
}


@pytest.mark.skipif(
    connection.vendor != "sqlite", reason="PostgreSQL looks by the narrower of two bounds"
)
@pytest.mark.usefixtures("filled")
def test_no_bound_of_a_list_is_said_twice(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for n in range(3):
        make_plan(project, f"made-{n}", days=n)
    for most in (call_filters, conversation_filters, plan_filters):
        monkeypatch.setattr(most, "MOST_TRIED", 2)
    for chunk in CHUNKS:
        monkeypatch.setattr(chunk, 1)
    now = timezone.now()
    since, until = now - timedelta(days=400), now + timedelta(days=1)

    for noun, asked_of in LISTS:
        asked = {"project_id": project.id} | asked_of(since, until)
        for sort in ORDERS[noun]:
            with subtests.test(noun=noun, sort=sort, asked=str(asked)), statements() as ran:
                assert read_list(noun, asked, sort)
                BESIDE[noun](asked)
            assert {each: found for each in ran if (found := list(said_twice(each)))} == {}


def test_two_bounds_on_one_side_are_seen() -> None:
    rows = Call.objects.filter(started_at__gte=NOW).exclude(started_at__gt=NOW, id=1)
    for asked, told in (
        (rows.filter(started_at__gt=NOW), ['"records_call"."started_at" >']),
        (bounded(rows, "started_at", gt=NOW, lt=NOW), []),
    ):
        assert list(said_twice(asked.order_by("id").query.sql_with_params()[0])) == told


MOMENTS = st.sampled_from([NOW + timedelta(minutes=minutes) for minutes in range(4)])
BOUNDS = st.lists(st.tuples(st.sampled_from(["gt", "gte", "lt", "lte"]), MOMENTS), max_size=5)


@given(bounds=BOUNDS)
def test_rows_are_those_within_all_bounds(bounds: list[tuple[str, datetime]]) -> None:
    """The same as by `filter`, by one bound on each side."""
    rows = Call.objects.filter(project_id=1)
    for word, at in bounds:
        rows = bounded(rows, "started_at", **{word: at})
    children: list[Any] = rows.query.where.children
    said = [each for each in children if isinstance(each.rhs, datetime)]

    def has(at: datetime, told: list[tuple[str, datetime]]) -> bool:
        return all(getattr(operator, NAMES[word])(at, bound) for word, bound in told)

    left = [(each.lookup_name, each.rhs) for each in said]
    assert len(left) == len({word[0] for word, _ in left})
    for minutes in range(-1, 9):
        at = NOW + timedelta(seconds=30 * minutes)
        assert has(at, left) == has(at, bounds)
