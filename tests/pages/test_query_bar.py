"""The query bar of lists: the same state as controls and address, and what it finds."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from helmdash.core.calls.lanes import Lane
from helmdash.core.text.query_terms import parse_query
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import filters as call_filters
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.calls.terms import CALL_FIELDS
from tests.factories import make_capture, record
from tests.pages.hygiene import faults


def rows_of(html: str) -> list[str]:
    return re.findall(r'data-row="([^"]*)"', html)


TALK = {"talk-0", "talk-1", "talk-2", "talk-3", "talk-4"}
ALL = TALK | {"cut", "also/with slash", "lost"}


# Each asks of the same calls, which take as long to store as some pages to render.
FOUND = [
    ("-level:healthy", {"talk-2", "talk-3", "talk-4", "cut", "lost"}),
    ("level:caution,critical", {"talk-2", "talk-4"}),
    # Both hold; a control could say but one of them.
    ("level:caution level:critical", set()),
    ("pack:a has:conversation pack:b", set()),
    ("-cause:any", ALL - {"cut", "lost"}),
    ("-cause:timeout has:error", {"cut", "lost"}),
    ("has:trim", {"cut"}),
    ("-has:trim", ALL - {"cut"}),
    ("-has:conversation", {"also/with slash"}),
    ("has:usage -has:error", ALL - {"cut", "lost", "talk-3"}),
    ("prompt:>100k", {"talk-2", "talk-4"}),
    ("prompt:20k..60k", {"talk-0", "talk-1", "also/with slash"}),
    # Unknown is within no range, and is not left out with one.
    ("-prompt:>0", {"talk-3", "lost"}),
    ("model:some/*", {"cut"}),
    ("-model:some/*", ALL - {"cut"}),
    ("model:nothing/*", set()),
    ("-model:some/free-model:free has:conversation", TALK | {"lost"}),
    ("-conversation:talk", ALL - TALK),
    ("conversation:talk,quiet", TALK | {"lost"}),
    ("-purpose:chat", {"cut"}),
    ("http:>=500", {"lost"}),
    ("-lane:side http:200", ALL - {"lost"}),
    ("lane:side -level:healthy", set()),
    ("has:tools", set()),
    ("has:cut", set()),
    ("-variant:none", set()),
    ("upstream:nobody", set()),
    ("-upstream:nobody", ALL),
    ("-client:codex -pack:x -finish:length -reason:suspected_cut ttft:>1h", set()),
]


def test_a_query_finds(owner: Client, filled: str, subtests: pytest.Subtests) -> None:
    for query, ids in FOUND:
        with subtests.test(query=query):
            response = owner.get("/calls/", {"query": query}, follow=True)

            html = response.content.decode()
            assert (response.status_code, faults(html)) == (200, [])
            assert set(rows_of(html)) == ids


def test_what_controls_can_say_moves_into_them(owner: Client, filled: str) -> None:
    rest = "-cause:timeout model:openai/* client:codex,aider"
    typed = f"level:critical {rest} talk finish:stop pack:a"
    asked = {"query": typed, "level": "healthy", "range": "7d", "cursor": "x", "pack": "b"}

    plain = owner.get("/calls/", asked)
    part = owner.get("/calls/", asked, headers={"HX-Request": "true"})

    assert (plain.status_code, part.status_code) == (302, 204)
    said = parse_qs(urlsplit(plain["Location"]).query)
    assert said == parse_qs(urlsplit(part["HX-Redirect"]).query) | {"project": ["default"]}
    assert said == {
        "query": [rest],
        "level": ["critical"],
        "finish_reason": ["stop"],
        "pack": ["a"],
        "range": ["7d"],
        "q": ["talk"],
        "project": ["default"],
    }
    html = owner.get(plain["Location"]).content.decode()
    assert f'value="{rest}"' in html
    assert '<option value="critical" selected>' in html


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("colour:red", "colour: there is no such field."),
        ("level:blue", "blue is not known of level"),
        ("latency:>soon", "soon is no duration"),
        ("a\x00b", "Null characters are not allowed"),
        ("x" * 501, "at most 500 characters"),
    ],
)
def test_what_cannot_be_read_is_named_and_nothing_is_lost(
    owner: Client, filled: str, query: str, said: str
) -> None:
    response = owner.get("/calls/", {"query": query, "level": "critical"})

    html = response.content.decode()
    assert (response.status_code, faults(html)) == (400, [])
    assert said in html
    assert f'value="{query}"'.replace("&gt;", ">") in html.replace("&gt;", ">")
    assert '<option value="critical" selected>' in html


def test_terms_are_tried_on_so_many_calls_for_one_page(
    owner: Client, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No page reads more than its share; what lies behind is a page further."""
    monkeypatch.setattr(call_filters, "MOST_TRIED", 5)
    now = timezone.now()
    # Three start at one moment, just where the first page stops looking.
    minutes = (1, 2, 3, 4, 5, 5, 5, 8, 9, 10, 11, 12)
    captures = [
        make_capture(
            id=f"c{n}",
            conversation=None,
            latency_ms=9_000 if n in (0, 5, 6, 11) else 10,
            started_at=now - timedelta(minutes=ago),
        )
        for n, ago in enumerate(minutes)
    ]
    record(*captures, project=project)
    terms = parse_query("latency:>2s", CALL_FIELDS).terms
    filters = CallFilters(terms=terms)

    cursor, seen, pages = None, [], 0
    while True:
        found = call_listing.page(project_id=project.id, filters=filters, cursor=cursor)
        seen += [call.id for call in found.items]
        pages += 1
        cursor = found.next
        assert (found.looked_to is None) == (cursor is None)
        if cursor is None:
            break

    assert sorted(seen) == ["c0", "c11", "c5", "c6"]
    assert len(seen) == 4
    assert pages == 3
    assert {call.id for call in call_listing.export(project_id=project.id, filters=filters)} == set(
        seen
    )
    html = owner.get("/calls/?query=latency:>2s").content.decode()
    assert "Looked at" in html
    near = call_listing.neighbours(project_id=project.id, filters=filters, call_id="c5")
    assert {near.before, near.after} <= {"c0", "c6", "c11", None}


def test_a_query_asks_a_bounded_number_of_questions(
    owner: Client, filled: str, project: ProjectInfo
) -> None:
    counts = []
    for query in ("", "prompt:>1", "prompt:>1 -model:a -conversation:talk has:error http:>1"):
        owner.get("/calls/", {"query": query})
        with CaptureQueriesContext(connection) as queries:
            owner.get("/calls/", {"query": query})
        counts.append(len(queries))

    # How far the list and its bars look, and once more the rows of the bars; then for each of both
    # two for the model and one for the conversation.
    assert counts[1] - counts[0] <= 4
    assert counts[2] - counts[1] <= 12


def test_each_lane_is_a_word(owner: Client, filled: str) -> None:
    for lane in Lane:
        assert owner.get(f"/calls/?query=-lane:{lane}").status_code == 200


def options_of(owner: Client, query: str) -> dict[str, str]:
    asked = {"HX-Request": "true", "HX-Target": "query-words"}
    html = owner.get("/query/calls/", {"query": query}, headers=asked).content.decode()
    return dict(re.findall(r'<option value="([^"]*)">([^<]*)</option>', html))


def test_fields_and_values_are_completed_with_their_counts(owner: Client, filled: str) -> None:
    assert [*options_of(owner, "-cau")] == ["-cause:"]
    assert len(options_of(owner, "")) == len(CALL_FIELDS)
    levels = options_of(owner, "has:conversation level:")
    assert levels["has:conversation level:critical"] == "1 call"
    assert [*options_of(owner, "model:FREE")] == ["model:some/free-model:free"]
    # An id is no value that anybody is offered, and what cannot be read is not counted.
    assert options_of(owner, "conversation:t") == {}
    assert options_of(owner, "nope:1 level:crit") == {"nope:1 level:critical": ""}


def test_values_are_counted_and_lead_to_their_calls(owner: Client, filled: str) -> None:
    html = owner.get("/query/calls/?query=has:conversation&range=7d").content.decode()
    links = re.findall(r'href="(/calls/\?[^"]*)">([^<]+)</a> <span class="num">(\d+)', html)

    assert "Of all 7 calls that fit" in html
    assert re.search(r'<a href="/calls/[^"]*" aria-current="page">Calls<', html)
    assert re.search(r'href="/calls/\?query=has%3Aconversation&amp;range=7d[^"]*">Back to', html)
    for address, value, count in links:
        rows = rows_of(owner.get(address.replace("&amp;", "&"), follow=True).content.decode())
        assert (value, len(rows)) == (value, int(count))
    assert {value for _, value, _ in links} >= {"critical", "openai/gpt-4o", "plan", "chat"}
    wrong = owner.get("/query/calls/?query=colour:red")
    assert (wrong.status_code, "no such field" in wrong.content.decode()) == (400, True)
    assert owner.get("/query/keys/").status_code == 404


def test_calls_lead_to_their_conversations_and_rows_may_be_compact(
    owner: Client, filled: str
) -> None:
    html = owner.get("/calls/?density=compact").content.decode()

    # Once in a column for wide screens, once in the second line for all others.
    assert html.count('href="/conversations/talk/?project=default"') == 10
    assert 'class="card compact"' in html
    assert 'class="card compact"' not in owner.get("/calls/").content.decode()
    assert "compact" in owner.get("/calls/?density=tiny").content.decode()
    # How rows look narrows nothing.
    empty = owner.get("/calls/?density=compact&q=nothing-like-it").content.decode()
    assert "Nothing matches these filters" in empty
