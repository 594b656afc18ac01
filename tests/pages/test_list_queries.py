"""Queries and orders of every list: what they find, that paging loses nothing, what they read."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.core.text.query_terms import parse_query
from helmdash.operations.fitting.fits import fit_catalog
from helmdash.pages.lists.lists import LISTS
from helmdash.queries import plans
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import facets as call_facets
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.conversations import filters as conversation_filters
from helmdash.queries.conversations import listing, over_time
from helmdash.queries.conversations.filters import CONVERSATION_TERMS, ConversationFilters
from helmdash.queries.fitting import trims
from helmdash.queries.fitting.trim_filters import TrimFilters
from helmdash.queries.lists.paging import BadCursor
from helmdash.queries.plans import filters as plan_filters
from helmdash.queries.plans.filters import PLAN_TERMS
from helmdash.records.models import Fit
from tests.factories import NOW, make_capture, record
from tests.pages.hygiene import faults
from tests.plan_rows import make_plan


def rows_of(html: str) -> list[str]:
    return re.findall(r'data-row="([^"]*)"', html)


@pytest.fixture
def lists(project: ProjectInfo, filled: str) -> ProjectInfo:
    """Of each list some items that differ, and some that do not."""
    now = timezone.now()
    for n in range(4):
        make_plan(
            project,
            f"made-{n}",
            days=n + 2,
            entries=("blog.write", "") if n == 1 else ("blog.publish",) * n,
            outcome=("ok", "gap", "failed", "running")[n],
            model=("acme/tiny", "acme/big", "openai/gpt-4o", "openai/gpt-4o")[n],
            latency_ms=(None, 900, 900, 5_000)[n],
            caller="robot" if n else "owner",
            before_bytes=n * 1000 or None,
            after_bytes=500 if n else None,
            followed=(None, True, False, None)[n],
            kind="route" if n == 2 else "plan",
        )
        fit_catalog(
            actor=SHELL,
            project=project,
            model=("acme/tiny", "openai/gpt-4o", "openai/gpt-4o", "house")[n],
            intent="translate a text",
            catalog={"packs": [{"name": "a", "description": "Says a thing. " * n}]},
            catalog_name=None,
            context=None,
            defaults=None,
            history=(),
            caller="robot" if n else "owner",
            now=now - timedelta(minutes=n),
        )
    cut = [{"label": "pack.limitations[]", "entries": 4, "bytes_saved": 21_000}]
    Fit.objects.filter(model="some/free-model:free").update(
        before_bytes=30_000,
        after_bytes=9_000,
        trim={"steps": cut, "kept": [], "removed": []},
        steps=cut,
    )
    return project


TALKS = {"talk", "plans", "quiet"}
PLANS = {"plan-1", "made-0", "made-1", "made-2", "made-3"}


# Each asks of the same items, which take as long to store as ten pages to render.
FOUND = [
    ("conversations", "level:critical", {"talk"}),
    ("conversations", "-level:critical", TALKS - {"talk"}),
    ("conversations", "model:some/*", {"plans"}),
    ("conversations", "-model:some/*", TALKS - {"plans"}),
    ("conversations", "calls:>1", {"talk"}),
    ("conversations", "has:error", {"plans", "quiet"}),
    ("conversations", "-has:error has:usage", {"talk"}),
    ("conversations", "failed:1 trimmed:0", {"quiet"}),
    ("conversations", "has:trim,clear", {"plans"}),
    ("conversations", "prompt:>100k -client:codex", {"talk"}),
    # What is unknown is within no range, and is not left out with one.
    ("conversations", "-prompt:>100k", TALKS - {"talk"}),
    ("conversations", "cause:any -cause:timeout", {"plans", "quiet"}),
    ("conversations", "-parent:x -has:parent rounds:1 -has:side,cut ta", {"talk"}),
    ("conversations", "reason:usage_unavailable", {"quiet"}),
    ("plans", "outcome:gap", {"made-1"}),
    # What runs for too long reads as failed, also to a query.
    ("plans", "outcome:failed,gap", {"made-1", "made-2", "made-3"}),
    ("plans", "-outcome:failed", {"plan-1", "made-0", "made-1"}),
    ("plans", "model:acme/* -model:acme/big", {"made-0"}),
    ("plans", "tool:*publish steps:>1", {"made-2", "made-3"}),
    ("plans", "-tool:*publish", {"made-0", "made-1"}),
    ("plans", "gaps:1 has:gap", {"made-1"}),
    ("plans", "latency:>2s", {"made-3"}),
    ("plans", "-latency:>2s", PLANS - {"made-3"}),
    ("plans", "has:cut before:>2000", {"plan-1", "made-3"}),
    ("plans", "followed:yes", {"made-1"}),
    ("plans", "-followed:yes", PLANS - {"made-1"}),
    ("plans", "caller:robot -kind:route -variant:none", {"made-1", "made-3"}),
    ("plans", "-has:text,step complexity:pack-chain -cause:any made", {"made-0"}),
]


def test_a_query_finds(owner: Client, lists: ProjectInfo, subtests: pytest.Subtests) -> None:
    for noun, query, ids in FOUND:
        with subtests.test(noun=noun, query=query):
            response = owner.get(f"/{noun}/", {"query": query}, follow=True)

            html = response.content.decode()
            assert (response.status_code, faults(html)) == (200, [])
            assert set(rows_of(html)) == ids


FOUND_FITS = [
    ("outcome:cut", ["some/free-model:free"]),
    ("-outcome:cut", ["acme/tiny", "openai/gpt-4o", "openai/gpt-4o", "house"]),
    ("model:openai/*", ["openai/gpt-4o"] * 2),
    ("-model:openai/* -model:house saved:0", ["acme/tiny"]),
    ("model:gpt-4o,house client:robot", ["openai/gpt-4o", "openai/gpt-4o", "house"]),
    ("cut:*", ["some/free-model:free"]),
    ("-cut:* -saved:>0 before:<45 fit_", ["acme/tiny"]),
    ("catalog:none after:>1", []),
    ("saved:>1k", ["some/free-model:free"]),
]


def test_a_query_finds_fits(owner: Client, lists: ProjectInfo, subtests: pytest.Subtests) -> None:
    named = dict(Fit.objects.values_list("name", "model"))

    for query, models in FOUND_FITS:
        with subtests.test(query=query):
            html = owner.get("/trims/", {"query": query}, follow=True).content.decode()

            assert faults(html) == []
            assert sorted(named[each] for each in rows_of(html)) == sorted(models)


@pytest.mark.parametrize("noun", LISTS)
def test_every_list_names_what_it_cannot_read_and_counts_its_values(
    owner: Client, lists: ProjectInfo, noun: str
) -> None:
    wrong = owner.get(f"/{noun}/", {"query": "colour:red", "density": "compact"})
    assert (wrong.status_code, "no such field" in wrong.content.decode()) == (400, True)
    html = owner.get(f"/query/{noun}/").content.decode()
    links = re.findall(rf'href="(/{noun}/\?[^"]*)">([^<]+)</a> <span class="num">(\d+)', html)
    assert (faults(html), len(links) > 2) == ([], True)
    for address, value, count in links:
        shown = owner.get(address.replace("&amp;", "&"), follow=True).content.decode()
        assert (value, len(rows_of(shown))) == (value, int(count))
    asked = {"HX-Request": "true", "HX-Target": "query-words"}
    fields = owner.get(f"/query/{noun}/", {"query": ""}, headers=asked).content.decode()
    assert fields.count("<option") == len(LISTS[noun].fields)
    models = owner.get(f"/query/{noun}/", {"query": "model:4O"}, headers=asked)
    assert 'value="model:openai/gpt-4o"' in models.content.decode()


def test_values_are_of_the_newest_calls_by_whatever_id_they_are_found(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_facets, "MOST_COUNTED", 2)
    names = ({"id": "web-1"}, {"correlation_id": "web-2"}, {"conversation": "web-3"})
    for n, name in enumerate(names):
        call = {"id": f"c{n}", **name, "pack": f"p{n}", "started_at": NOW - timedelta(hours=9 - n)}
        record(make_capture(**call), project=project)

    found = call_facets.facets(project_id=project.id, filters=CallFilters(q="web"))

    assert (found.rows, found.is_all) == (2, False)
    assert [found.count("pack", f"p{n}") for n in range(3)] == [0, 1, 1]


def test_prompts_over_nothing_are_those_that_are_known(owner: Client, project: ProjectInfo) -> None:
    record(make_capture(id="told", usage={"prompt_tokens": 1}), project=project)
    record(make_capture(id="untold", usage=None), project=project)

    html = owner.get("/calls/", {"tokens_over": "0"}).content.decode()

    assert rows_of(html) == ["told"]


@pytest.mark.parametrize(
    ("path", "caption"),
    [
        ("/calls/", "Calls, newest first"),
        ("/calls/?sort=-started", "Calls, newest first"),
        ("/calls/?sort=started", "Calls, oldest first"),
        ("/calls/?sort=-prompt", "Calls, largest prompt first"),
        ("/plans/?sort=steps", "Plans and routes, fewest steps first"),
    ],
)
def test_a_table_is_named_by_its_order(
    owner: Client, lists: ProjectInfo, path: str, caption: str
) -> None:
    html = owner.get(path).content.decode()

    assert f"{caption}</caption>" in html


# --- orders


def orders_of(noun: str) -> list[str]:
    form = LISTS[noun].form
    return [
        text
        for name, (down, up) in form.orders.items()
        for text, words in ((f"-{name}", down), (name, up))
        if words
    ]


def pages_of(read: Callable[..., Any], sort: str, limit: int) -> list[str]:
    """All ids of a list, page by page; something comes in after each."""
    cursor, seen = None, []
    while True:
        found = read(sort=sort, cursor=cursor, limit=limit)
        seen += [each.id for each in found.items]
        cursor = found.next
        if cursor is None:
            return seen


def reader(noun: str, project: ProjectInfo) -> Callable[..., Any]:
    def read(**asked: Any) -> Any:
        match noun:
            case "calls":
                return call_listing.page(project_id=project.id, filters=CallFilters(), **asked)
            case "conversations":
                return listing.page(project_id=project.id, filters=ConversationFilters(), **asked)
            case "plans":
                return plans.page(project_id=project.id, now=NOW, **asked)
            case _:
                return trims.page(project_id=project.id, filters=TrimFilters(), **asked)

    return read


@pytest.mark.parametrize("noun", LISTS)
def test_pages_of_every_order_have_each_row_once_as_the_page_and_the_file_show_them(
    owner: Client, lists: ProjectInfo, noun: str, subtests: pytest.Subtests
) -> None:
    for sort in orders_of(noun):
        with subtests.test(sort=sort):
            check_pages_of_an_order(owner, lists, noun, sort)


def check_pages_of_an_order(owner: Client, lists: ProjectInfo, noun: str, sort: str) -> None:
    html = owner.get(f"/{noun}/", {"sort": sort}).content.decode()
    shown = rows_of(html)
    read = reader(noun, lists)

    assert faults(html) == []
    assert pages_of(read, sort, limit=1) == shown
    file = cast("StreamingHttpResponse", owner.get(f"/export/{noun}.ndjson", {"sort": sort}))
    assert [json.loads(line)["id"] for line in file.getvalue().splitlines()] == shown
    walked, at = [], shown[0]
    while at:
        walked.append(at)
        part = owner.get(
            f"/{noun}/",
            {"sort": sort, "open": at},
            headers={"HX-Request": "true", "HX-Target": "panel"},
        ).content.decode()
        steps = dict(re.findall(r'data-step="(-?1)" href="[^"]*[?;]open=([^"&]*)', part))
        at = steps.get("1", "").replace("%2F", "/").replace("+", " ")
    assert walked == shown


@pytest.mark.parametrize("noun", LISTS)
def test_figures_are_in_order_and_what_is_unknown_is_last(
    owner: Client, lists: ProjectInfo, noun: str
) -> None:
    figures: dict[str, Callable[[Any], int | None]] = {
        "calls": lambda each: each.usage.prompt_tokens,
        "conversations": lambda each: each.health.prompt_tokens,
        "plans": lambda each: each.latency_ms,
        "trims": lambda each: each.before_bytes - each.after_bytes,
    }
    name = {"calls": "prompt", "conversations": "prompt", "plans": "latency", "trims": "saved"}
    for sign, is_down in (("-", True), ("", False)):
        items = reader(noun, lists)(sort=f"{sign}{name[noun]}").items
        told = [figures[noun](each) for each in items]
        known = [each for each in told if each is not None]
        assert known == sorted(known, reverse=is_down)
        assert told == [*known, *[None] * (len(told) - len(known))]


def test_what_comes_in_between_two_pages_moves_nothing(
    lists: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only so many of the newest are sorted: which, the first page says, and its cursor keeps."""
    monkeypatch.setattr("helmdash.queries.lists.sorting.MOST_SORTED", 4)
    monkeypatch.setattr("helmdash.queries.fitting.trims.MOST_READ", 3)
    for noun in ("calls", "trims"):
        read = reader(noun, lists)
        sort = "-prompt" if noun == "calls" else "-before"
        first = read(sort=sort, limit=1)
        assert first.sorted_from is not None
        record(make_capture(id=f"new-{noun}", usage={"prompt_tokens": 1}), project=lists)
        rest, cursor = [], first.next
        while cursor:
            found = read(sort=sort, limit=1, cursor=cursor)
            assert found.sorted_from == first.sorted_from
            rest += [each.id for each in found.items]
            cursor = found.next
        expected = 4 if noun == "calls" else 3
        assert len({first.items[0].id, *rest} - {f"new-{noun}"}) == expected
        assert len(rest) == len(set(rest))
        # A cursor of one order is none of another.
        with pytest.raises(BadCursor):
            read(sort=sort.removeprefix("-"), cursor=first.next)


def test_a_file_of_what_is_sorted_is_not_called_all(
    owner: Client, lists: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = owner.get("/calls/?sort=-prompt").content.decode()
    monkeypatch.setattr("helmdash.queries.lists.sorting.MOST_SORTED", 4)
    part = owner.get("/calls/?sort=-prompt").content.decode()

    assert ["Export all that match" in html for html in (whole, part)] == [True, False]
    assert "Export these, in this order" in part


def test_no_two_choices_of_a_filter_read_alike(owner: Client, filled: str) -> None:
    for page in ("/calls/", "/conversations/", "/plans/", "/trims/"):
        html = owner.get(page).content.decode()
        for choices in re.findall(r"<select.*?</select>", html, re.DOTALL):
            read = [each.strip().lower() for each in re.findall(r"<option[^>]*>([^<]*)<", choices)]
            assert len(read) == len(set(read)), (page, read)


def test_an_order_that_is_not_offered_is_named(owner: Client, lists: ProjectInfo) -> None:
    for noun in LISTS:
        response = owner.get(f"/{noun}/", {"sort": "-colour"})
        assert response.status_code == 400
        assert "-colour is not one of: " in response.content.decode()
    assert owner.get("/calls/", {"sort": "-prompt", "cursor": "WzEsMl0"}).status_code == 400


@pytest.mark.parametrize("asked", ["..9999-12-31T23:59Z", "0001-01-01T00:00Z.."])
def test_a_range_to_an_edge_of_all_years_is_read(
    owner: Client, lists: ProjectInfo, asked: str
) -> None:
    for noun in LISTS:
        # What stands above a list is read with another bound where something else narrows it.
        query = {"range": asked, "model": "openai/gpt-4o"}
        found = {owner.get(f"{part}/{noun}/", query).status_code for part in ("", "/query")}
        assert (noun, found) == (noun, {200})


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ('["0001-01-01T00:00:00+00:00",5]', 200),
        ('["9999-12-31T23:59:59+00:00",5]', 200),
        ('["0001-01-01T00:00:00+23:59",5]', 400),
        ('["9999-12-31T23:59:59-23:59",5]', 400),
        ("[" * 300, 400),
        ("[" * 30_000, 400),
    ],
)
def test_a_cursor_at_an_edge_is_read_or_refused(
    owner: Client, lists: ProjectInfo, written: str, status: int
) -> None:
    cursor = base64.urlsafe_b64encode(written.encode()).decode()
    for noun in ("calls", "plans", "trims"):
        answer = owner.get(f"/{noun}/", {"cursor": cursor, "range": "all"})
        assert (noun, answer.status_code) == (noun, status)


# --- what they read


def test_terms_are_tried_on_so_many_for_one_page(
    owner: Client, lists: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_filters, "MOST_TRIED", 2)
    monkeypatch.setattr(plan_filters, "MOST_TRIED", 2)
    terms = parse_query("calls:1", CONVERSATION_TERMS.fields).terms
    talks = ConversationFilters(terms=terms)
    found = listing.page(project_id=lists.id, filters=talks)
    assert found.looked_to is not None
    rest = listing.page(project_id=lists.id, filters=talks, cursor=found.next)
    assert {each.id for each in (*found.items, *rest.items)} == {"plans", "quiet"}
    assert over_time.newest_moments(project_id=lists.id, filters=talks).read_from is not None

    terms = parse_query("steps:2", PLAN_TERMS.fields).terms
    cursor, seen, pages = None, [], 0
    while True:
        page = plans.page(project_id=lists.id, now=NOW, terms=terms, cursor=cursor)
        seen += [each.id for each in page.items]
        pages += 1
        cursor = page.next
        if cursor is None:
            break
    assert (sorted(seen), pages) == (["made-1", "made-2"], 3)
    assert "Looked at" in owner.get("/plans/?query=steps:2").content.decode()


def test_the_number_of_questions_of_a_list_does_not_depend_on_its_rows(
    owner: Client, lists: ProjectInfo
) -> None:
    def count(noun: str, query: dict[str, str]) -> int:
        owner.get(f"/{noun}/", query)
        with CaptureQueriesContext(connection) as ran:
            owner.get(f"/{noun}/", query)
        return len(ran)

    asked = {
        "conversations": {"query": "calls:>0 has:usage", "sort": "-prompt"},
        "plans": {"query": "steps:>0", "sort": "-latency"},
        "trims": {"query": "before:>0", "sort": "-saved"},
        "calls": {"query": "prompt:>0", "sort": "-prompt"},
    }
    before = {noun: (count(noun, {}), count(noun, query)) for noun, query in asked.items()}
    for n in range(6):
        record(make_capture(conversation=f"more-{n}"), project=lists)
        make_plan(lists, f"more-{n}", days=0.1)

    for noun, query in asked.items():
        assert (count(noun, {}), count(noun, query)) == before[noun]
        # How far the list looks, which rows are sorted, and how far its bars look.
        assert before[noun][1] - before[noun][0] <= 5, noun


def test_rows_to_be_sorted_are_found_by_the_index_of_their_time(
    lists: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says its plan for few rows as for many."""
    if connection.vendor == "postgresql":
        return
    monkeypatch.setattr("helmdash.queries.lists.sorting.MOST_SORTED", 2)
    monkeypatch.setattr("helmdash.queries.plans.listing.MOST_TRIED", 2)
    indexes = {
        "calls": ("-latency", "call_by_time"),
        "conversations": ("-failed", "conversation_by_time_and_name"),
        "plans": ("-latency", "plan_by_time"),
    }
    for noun, (sort, index) in indexes.items():
        with CaptureQueriesContext(connection) as ran:
            reader(noun, lists)(sort=sort)
        for query in ran.captured_queries[:2]:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
                told = " ".join(str(row[-1]) for row in cursor.fetchall())
            assert index in told, (noun, told)
