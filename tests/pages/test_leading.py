"""Lists of several filters: the rows that fit all, looked for by the filter that leaves fewest."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model

from helmdash.core.text.query_terms import parse_query
from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import facets as call_facets
from helmdash.queries.calls import filters as call_filters
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls import series
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.calls.terms import CALL_TERMS
from helmdash.queries.conversations import facets, listing, over_time
from helmdash.queries.conversations import filters as conversation_filters
from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.queries.lists import sorting
from helmdash.records.models import Call, Conversation
from tests.factories import NOW, make_capture
from tests.pages.test_by_value import look_at_tables, statements
from tests.recording.support import CRITICAL, HEALTHY, make_ruled_project, record

ROWS = 300
# So few that most combinations are looked for in several pages.
MOST = 12
# Of each a frequent value, one that some have, and a rare one.
SHARES = (85, 13, 2)
KINDS: dict[str, tuple[Any, ...]] = {
    "model": ("openai/gpt-4o", "anthropic/claude", "house/rare"),
    "prompt": (HEALTHY, None, CRITICAL),
    "http_status": (200, 429, 504),
    "finish_reason": ("stop", "tool_calls", "length"),
    "purpose": ("chat", "plan", "verify"),
    "pack": ("", "reports", "triage"),
    "client_name": ("codex", "opencode", "aider"),
}
COLUMNS = {"model": "model_key", "client": "client_name"}
ASKED = ("model", "level", "cause", "finish_reason", "purpose", "pack", "client")


@pytest.fixture
def project(db: None) -> ProjectInfo:
    """Calls, each of a conversation of its own."""
    made = make_ruled_project()
    chance = random.Random(7)
    captures = []
    for n in range(ROWS):
        told = {name: chance.choices(values, SHARES)[0] for name, values in KINDS.items()}
        prompt, has_failed = told.pop("prompt"), told["http_status"] != 200
        captures.append(
            make_capture(
                id=f"n{n}",
                conversation=f"n{n}",
                started_at=NOW - timedelta(hours=n // 2),
                usage=None if prompt is None else {"prompt_tokens": prompt + n},
                status="error" if has_failed else None,
                **told,
            )
        )
    record(made, *captures)
    fold_all()
    look_at_tables()
    return made


def combinations(asked: tuple[str, ...], count: int) -> Iterator[dict[str, Any]]:
    """Two or three filters, each of a value that some row has."""
    chance = random.Random(11)
    known = {
        name: sorted({*Call.objects.values_list(COLUMNS.get(name, name), flat=True)} - {"", None})
        for name in asked
    }
    for _ in range(count):
        names = chance.sample(asked, chance.choice((2, 2, 3)))
        told = {name: chance.choice(known[name]) for name in names}
        if "cause" in told and chance.random() < 0.4:
            told["cause"] = "any"
        yield told


def rows_of(model: type[Model], field: str) -> list[dict[str, Any]]:
    """Newest first."""
    return [dict(row) for row in model._default_manager.order_by(f"-{field}", "-id").values()]


def fits(row: dict[str, Any], told: dict[str, Any]) -> bool:
    return all(
        bool(row["cause"]) if value == "any" else row[COLUMNS.get(name, name)] == value
        for name, value in told.items()
    )


def walked(read: Callable[..., Any], **asked: Any) -> list[str]:
    """The ids of all pages, of which each looks at so many rows only."""
    found: list[str] = []
    cursor = None
    for _ in range(ROWS):
        told = read(**asked, cursor=cursor, limit=7)
        found += [each.id for each in told.items]
        cursor = told.next
        if cursor is None:
            return found
    raise AssertionError("the list does not end")


def test_pages_of_calls_have_what_fits_all_filters(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_filters, "MOST_TRIED", MOST)
    rows = rows_of(Call, "started_at")
    in_parts = 0
    for told in combinations(ASKED, 20):
        expected = [row["name"] for row in rows if fits(row, told)]
        asked: dict[str, Any] = {"project_id": project.id, "filters": CallFilters(**told)}
        first = call_listing.page(**asked)
        in_parts += first.looked_to is not None
        assert walked(call_listing.page, **asked) == expected, told
        turned = walked(call_listing.page, **asked, sort=call_listing.OLDEST)
        assert turned == expected[::-1], told
        if len(expected) > 2:
            beside = call_listing.neighbours(**asked, call_id=expected[1])
            # Farther away than a page looks nothing is seen.
            assert beside.before in (expected[0], None)
            assert beside.after in (expected[2], None)
            assert None not in (beside.before, beside.after) or first.looked_to
    assert in_parts > 5


def test_the_newest_that_fit_are_sorted_counted_and_drawn(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(Call, "started_at")
    for told in combinations(ASKED, 12):
        fitting = [row for row in rows if fits(row, told)]
        asked: dict[str, Any] = {"project_id": project.id, "filters": CallFilters(**told)}
        known = [row for row in fitting if row["prompt_tokens"] is not None]
        known.sort(key=lambda row: row["prompt_tokens"])
        rest = [row["name"] for row in fitting if row["prompt_tokens"] is None]

        assert walked(call_listing.page, **asked, sort="prompt") == [
            *(row["name"] for row in known),
            *rest,
        ]
        counted = call_facets.facets(**asked)
        assert (counted.rows, counted.is_all) == (len(fitting), True)
        bars = series.call_series(**asked, now=NOW, split=series.Split.LEVEL)
        assert sum(bar.calls or 0 for bar in bars.bars) == len(fitting)
        assert not bars.is_estimate
        with monkeypatch.context() as bounded:
            bounded.setattr(sorting, "MOST_SORTED", MOST)
            bounded.setattr(call_filters, "MOST_TRIED", MOST)
            part = call_listing.page(**asked, sort="prompt")
            assert part.sorted_from is not None or len(part.items) == min(len(fitting), 50)
            drawn = series.call_series(**asked, now=NOW, split=series.Split.LEVEL)
            assert drawn.is_estimate or sum(bar.calls or 0 for bar in drawn.bars) == len(fitting)


def test_pages_of_conversations_have_what_fits_all_filters(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(Conversation, "latest_at")
    names = ("model", "level", "client")
    for told in combinations(names, 8):
        expected = [row["name"] for row in rows if fits({"cause": "", **row}, told)]
        filters = ConversationFilters(**told)
        asked: dict[str, Any] = {"project_id": project.id, "filters": filters}
        counted = facets.facets(**asked)
        assert (counted.rows, counted.is_all) == (len(expected), True)
        moments = over_time.newest_moments(**asked)
        assert moments.read_from is None
        with monkeypatch.context() as bounded:
            bounded.setattr(conversation_filters, "MOST_TRIED", MOST)
            assert walked(listing.page, **asked) == expected, told
            assert walked(listing.page, **asked, sort=listing.OLDEST) == expected[::-1], told
            begun = NOW - timedelta(hours=20)
            ranged = {**asked, "filters": ConversationFilters(**told, until=begun)}
            at = {row["name"]: row["started_at"] for row in rows}
            assert walked(listing.page, **ranged) == [n for n in expected if at[n] < begun]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL knows which value is rare")
@pytest.mark.parametrize(
    ("told", "index"),
    [
        ({"model": "house/rare", "level": "unknown"}, "call_by_model_key"),
        ({"model": "openai/gpt-4o", "level": "critical"}, "call_by_level"),
        ({"cause": "any", "pack": "triage"}, "call_by_pack"),
        ({"cause": "any", "purpose": "chat"}, "call_by_purpose"),
        ({"client": "codex", "purpose": "verify", "finish_reason": "stop"}, "call_by_purpose"),
        ({"level": "unknown", "model": "house/rare", "tokens_over": 5}, "call_by_model_key"),
    ],
)
def test_a_list_looks_by_the_value_that_is_rare(
    project: ProjectInfo, told: dict[str, Any], index: str
) -> None:
    asked: dict[str, Any] = {"project_id": project.id, "filters": CallFilters(**told)}
    with statements() as ran:
        call_listing.page(**asked)
        call_listing.page(**asked, sort="latency")
        call_facets.facets(**asked)
        series.call_series(**asked, now=NOW, split=series.Split.LEVEL)

    # Those that only look how far the rows of one filter reach ask for two places.
    wanted = [each for each in ran if "LIMIT 2 OFFSET" not in each[0]]
    plans = []
    for statement, params in wanted:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}", params)
            plans.append(str(cursor.fetchall()))
    assert len(plans) >= 4
    assert [plan for plan in plans if f" {index} (" not in plan and "PRIMARY KEY" not in plan] == []


WANTED: dict[str, Callable[[dict[str, Any]], bool]] = {
    "model:anthropic/*,house/rare level:caution,unknown": lambda row: (
        row["level"] in ("caution", "unknown") and row["model_key"] != "openai/gpt-4o"
    ),
    "pack:triage,reports cause:any -has:usage": lambda row: bool(
        row["pack"] and row["cause"] and row["prompt_tokens"] is None
    ),
    "finish:stop purpose:plan,verify": lambda row: (
        row["finish_reason"] == "stop" and row["purpose"] in ("plan", "verify")
    ),
}


def test_values_of_a_query_lead_as_well(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_filters, "MOST_TRIED", MOST)
    rows = rows_of(Call, "started_at")
    for query, is_wanted in WANTED.items():
        terms = parse_query(query, CALL_TERMS.fields).terms
        filters = CallFilters(terms=terms)
        expected = [row["name"] for row in rows if is_wanted(row)]
        assert expected
        assert walked(call_listing.page, project_id=project.id, filters=filters) == expected
