"""Finding calls by the beginning of an id, the same however many there are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import filters as call_filters
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.records import call_names
from tests.factories import NOW, make_capture
from tests.recording.support import make_ruled_project, record


@pytest.fixture
def recorded(project: ProjectInfo) -> ProjectInfo:
    """Twelve calls, one a minute; id, conversation and trace each begin otherwise."""
    stranger = make_ruled_project(slug="other", name="Other")
    for number in range(12):
        call = make_capture(
            id=f"id-{number:02}",
            conversation=f"talk-{number % 3}" if number % 4 else None,
            correlation_id=f"trace-{number // 6}" if number % 2 else None,
            started_at=NOW + timedelta(minutes=number),
        )
        record(project, call)
        record(stranger, call)
    return project


def test_an_id_that_all_calls_share_is_not_gone_through(
    recorded: ProjectInfo, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    def minutes(*ids: str, most: int = 10, oldest: bool = False) -> list[float]:
        with django_assert_num_queries(1):
            found = call_names.find_correlated(recorded.id, ids, most, oldest=oldest)
        return [(place.started_at - NOW) / timedelta(minutes=1) for place in found]

    exact = minutes("trace-0", "trace-1", most=4)
    first = minutes("trace-1", "trace-0", most=4, oldest=True)
    monkeypatch.setattr(call_names, "MOST_OF_ID", 2)

    assert (exact, first) == ([11, 9, 7, 5], [1, 3, 5, 7])
    assert minutes("trace-0", "trace-1") == []
    # One more than is told, to know it by.
    assert len(minutes("trace-0", oldest=True)) == 3
    assert call_names.find_correlated(recorded.id, [], 10) == []


# Ids of one kind are many or few by this number, and are then found in different ways.
@pytest.fixture(params=[0, 3, 10_000], ids=["all are many", "some are many", "all are few"])
def _many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_filters, "_SORTED_CALLS", request.param)


BEGINNINGS = [
    ("id-", range(11, -1, -1)),  # every id
    ("id-0", range(9, -1, -1)),
    ("id-07", [7]),
    ("talk-1", [10, 7, 1]),  # 4 names none
    ("trace-1", [11, 9, 7]),
    ("trace", [11, 9, 7, 5, 3, 1]),
    ("ID-0", []),  # ids are compared exactly
    ("d-07", []),  # a part is not a beginning
    ("id_0", []),  # no wildcards
    ("%", []),
]


@pytest.mark.usefixtures("_many")
def test_a_search_finds_what_begins_so_newest_first(
    recorded: ProjectInfo, subtests: pytest.Subtests
) -> None:
    for text, found in BEGINNINGS:
        with subtests.test(text=text):
            page = call_listing.page(project_id=recorded.id, filters=CallFilters(q=text))

            assert [item.id for item in page.items] == [f"id-{number:02}" for number in found]


@pytest.mark.usefixtures("_many")
def test_a_search_goes_on_where_its_page_ended(recorded: ProjectInfo) -> None:
    pages: list[list[str]] = []
    cursor = None
    while cursor is not None or not pages:
        page = call_listing.page(
            project_id=recorded.id, filters=CallFilters(q="id-"), cursor=cursor, limit=5
        )
        pages.append([item.id for item in page.items])
        cursor = page.next

    assert [len(page) for page in pages] == [5, 5, 2]
    shown = [name for page in pages for name in page]
    assert shown == [f"id-{number:02}" for number in range(11, -1, -1)]


@pytest.mark.usefixtures("_many")
def test_a_search_and_a_filter_narrow_together(recorded: ProjectInfo) -> None:
    filters = CallFilters(q="id-", conversation="talk-1", since=NOW + timedelta(minutes=5))

    page = call_listing.page(project_id=recorded.id, filters=filters)

    assert [item.id for item in page.items] == ["id-10", "id-07"]


def test_an_export_finds_the_same_oldest_first(recorded: ProjectInfo) -> None:
    found = call_listing.export(project_id=recorded.id, filters=CallFilters(q="trace-1"))

    assert [item.id for item in found] == ["id-07", "id-09", "id-11"]
