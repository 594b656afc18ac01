"""Figures of some keys or some words alone: the same as those picked from all, and found without
the others."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.db import connection

from helmdash.core.rollups.figures import CALLS, Counts, Key, Marginal
from helmdash.core.rollups.periods import Span, Width, period_of, quarter_of
from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.calls.series import Split, call_series
from helmdash.records.rollups.rollup_keys import key_end
from helmdash.records.rollups.rollup_rows import read_spans
from helmdash.records.statements.bulk import analyze
from helmdash.records.statements.direct import tell
from tests.factories import NOW, make_capture
from tests.pages.test_conversation_search import most_rows
from tests.recording.support import make_ruled_project, record

MODELS = ("acme/one", "acme/one-more", 'a","b/c"]', "acme/%")
PURPOSES = ("plan", "chat")
# The last two hold what other keys end with.
VARIANTS = ("single_pick", "pick", '"pick', ',"pick')
DAYS = 60


@pytest.fixture
def counted(db: None) -> ProjectInfo:
    """A call each day of each model, purpose and variant."""
    project = make_ruled_project()
    for day in range(DAYS):
        record(
            project,
            *(
                make_capture(
                    id=f"{day} {number}",
                    model=model,
                    purpose=purpose,
                    prompt_variant=variant,
                    started_at=NOW - timedelta(days=day),
                )
                for number, (model, purpose, variant) in enumerate(
                    product(MODELS, PURPOSES, VARIANTS)
                )
            ),
        )
    fold_all()
    analyze()
    return project


def _read(project: ProjectInfo, **asked: Any) -> dict[Key, int]:
    first = period_of(Width.DAY, quarter_of(NOW - timedelta(days=DAYS)))
    found = read_spans(
        project_id=project.id,
        marginal=Marginal.MODEL,
        spans=[Span(Width.DAY, first, None)],
        most_uncounted=0,
        **asked,
    )
    return {key: sum(_calls(counts) for *_, counts in rows) for key, rows in found.figures.items()}


def _calls(counts: Counts) -> int:
    return counts[CALLS]


@pytest.mark.parametrize("is_complete", [True, False])
def test_keys_that_are_asked_for_are_those_picked_from_all(
    counted: ProjectInfo, is_complete: bool
) -> None:
    whole = _read(counted)
    assert len(whole) == len(MODELS) * len(PURPOSES) * len(VARIANTS)
    asked: list[tuple[list[str] | None, tuple[str, ...]]] = [
        (None, ("pick",)),
        (None, ('"pick',)),
        (None, ("plan", "single_pick")),
        (["acme/one"], ()),
        (["acme/one", "acme/%"], ("chat", "pick")),
        ([], ()),
        (["nobody"], ("pick",)),
    ]

    for words, last in asked:
        ends = (key_end(*last),) if last else ()
        found = _read(counted, words=words, ends=ends, is_complete=is_complete)

        assert found == {
            key: calls
            for key, calls in whole.items()
            if (words is None or key[0] in words) and key[len(key) - len(last) :] == last
        }, (words, last)


@pytest.mark.parametrize("heads", [(), ("l",), ("f", "o")], ids=str)
def test_words_that_are_asked_for_are_read_whatever_is_beside_them(
    db: None, heads: tuple[str, ...]
) -> None:
    project = make_ruled_project()
    models = ('x/"n":7', 'x/"n', 'x/"l:healthy', 'x/,"f:stop":9,', "x/{'n':3")
    record(project, *(make_capture(model=model, started_at=NOW) for model in models))
    fold_all()

    def read(**asked: Any) -> Counts:
        found = read_spans(
            project_id=project.id,
            marginal=Marginal.ALL,
            spans=[Span(Width.DAY, None, None)],
            most_uncounted=0,
            **asked,
        )
        ((_, _, counts),) = found.figures[()]
        return counts

    whole = read()
    assert len([word for word in whole if word.startswith("s:")]) == len(models)
    wanted = {word for word in whole if word == CALLS or word.partition(":")[0] in heads}
    assert read(heads=heads) == {word: whole[word] for word in wanted}
    assert len(wanted) > len(heads)


FILTERS: list[dict[str, Any]] = [
    {"variant": "pick"},
    {"variant": "single_pick", "purpose": "plan"},
    {"variant": '"pick', "model": "acme/one"},
    {"model": "acme/one"},
]


@pytest.mark.parametrize("asked", FILTERS, ids=str)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite tells no rows of a plan")
def test_bars_of_some_keys_do_not_look_at_the_others(
    counted: ProjectInfo, asked: dict[str, Any]
) -> None:
    filters = CallFilters(since=NOW - timedelta(days=DAYS), **asked)
    # Fourteen thousand rows cost about as much to look through as these to find by the index:
    # which of both is taken hangs on how the tests before have left the table's pages.
    tell("SET LOCAL enable_seqscan = off", [])
    ran: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        ran.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        found = call_series(project_id=counted.id, filters=filters, now=NOW, split=Split.LEVEL)

    assert sum(bar.calls or 0 for bar in found.bars) == DAYS * _fitting(asked)
    rows = [most_rows(sql, params) for sql, params in ran if "FROM records_rollup WHERE" in sql]
    keys = len(MODELS) * len(PURPOSES) * len(VARIANTS)
    # Before PostgreSQL 17 an index is not gone through anew for each of the keys.
    postgres: Any = connection
    looked_at = _fitting(asked) if postgres.pg_version >= 170_000 else keys
    assert rows
    assert max(rows) <= max(4 * keys, DAYS * looked_at), rows


def _fitting(asked: dict[str, Any]) -> int:
    sizes = {"variant": len(VARIANTS), "purpose": len(PURPOSES), "model": len(MODELS)}
    left = 1
    for name, size in sizes.items():
        left *= 1 if name in asked else size
    return left
