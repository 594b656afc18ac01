"""Sums of rows that were added up before are taken as long as the rows are the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orjson
import pytest

from helmdash.core.rollups.figures import (
    Counts,
    Distribution,
    Marginal,
    Sum,
    add,
    heads,
    heads_of_all,
)
from helmdash.core.rollups.periods import Width
from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.rollups import figures
from helmdash.records.models import Rollup
from helmdash.records.rollups import kept_sums, rollup_rows
from helmdash.records.rollups.kept_sums import Piece, Row, summed
from tests.factories import NOW, make_capture
from tests.recording.support import make_ruled_project, record

MONTH = Width.MONTH.value


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The periods of the rows that were read, in their order."""
    monkeypatch.setattr(kept_sums, "_kept", OrderedDict())
    return []


def _row(period: int, counts: Counts, *, width: int = MONTH) -> Row:
    plain = {word: n for word, n in counts.items() if word[0] != "L"}
    waits = {word: n for word, n in counts.items() if word[0] == "L"}
    return Row(width, period, orjson.dumps(plain).decode(), (orjson.dumps(waits).decode(), None))


def _summed(rows: Sequence[Row], loaded: list[int], place: object = "here") -> list[Piece]:
    def load(row: Row) -> Counts:
        loaded.append(row.period)
        counts: Counts = orjson.loads(row.figures)
        counts.update(*(orjson.loads(text) for text in row.distributions if text))
        return counts

    return summed(place, rows, load)


def _total(pieces: Sequence[Piece]) -> Counts:
    total: Counts = {}
    for _, _, counts in pieces:
        add(total, counts)
    return total


ROWS = [
    _row(12, {"n": 3, "s:GPT-4o": 3, "L:5": 2}),
    _row(11, {"n": 2, "s:gpt-4o": 1, "s:GPT-4o": 1, "L:5": 1, "L:7": 1}),
]


def test_rows_are_read_once_and_come_to_their_sum(loaded: list[int]) -> None:
    first = _summed(ROWS, loaded)
    again = _summed([*reversed(ROWS)], loaded)

    assert loaded == [11, 12]
    assert again == first
    assert _total(first) == {"n": 5, "s:GPT-4o": 4, "s:gpt-4o": 1, "L:5": 3, "L:7": 1}
    assert first[0] == (Width.MONTH, 12, {"n": 5, "L:5": 3, "L:7": 1})


def test_how_a_model_was_spelt_is_told_by_row(loaded: list[int]) -> None:
    _, *spelt = _summed(ROWS, loaded)

    assert [(period, counts) for _, period, counts in spelt] == [
        (11, {"s:gpt-4o": 1, "s:GPT-4o": 1}),
        (12, {"s:GPT-4o": 3}),
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [ROWS[0]],
        [*ROWS, _row(10, {"n": 1})],
        [_row(12, {"n": 3, "s:GPT-4o": 3, "L:5": 3}), ROWS[1]],
        [ROWS[0], ROWS[1]._replace(period=10)],
        [ROWS[0]._replace(distributions=(None, ROWS[0].distributions[0])), ROWS[1]],
    ],
)
def test_rows_that_are_others_are_added_up_anew(rows: list[Row], loaded: list[int]) -> None:
    _summed(ROWS, loaded)
    loaded.clear()

    _summed(rows, loaded)

    assert len(loaded) == len(rows)


def test_another_place_has_sums_of_its_own(loaded: list[int]) -> None:
    _summed(ROWS, loaded)
    _summed(ROWS, loaded, place="there")

    assert len(loaded) == 4


def test_no_more_are_kept_than_that(loaded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_sums, "_MOST_KEPT", 2)
    for place in ("a", "b", "a", "c"):
        _summed(ROWS, loaded, place=place)
    loaded.clear()

    _summed(ROWS, loaded, place="a")
    _summed(ROWS, loaded, place="b")

    assert loaded == [11, 12]


@pytest.mark.parametrize("is_kept", [True, False])
def test_counts_are_taken_apart_piece_by_piece_as_together(is_kept: bool) -> None:
    pieces: list[Counts] = [
        {"n": 5, "L:5": 2, "L:7": 1, "s:gpt-4o": 5},
        {"n": 2, "L:5": 1, "f:stop": 2},
        # What is not the rollups' any more: a call that was changed, or erased.
        {"n": -1, "L:7": -1, "f:stop": -2, "c:empty": 1},
    ]
    kept = [Sum(each) if is_kept and at == 0 else each for at, each in enumerate(pieces)]
    together = _total([(Width.DAY, 0, each) for each in pieces])

    for _ in range(2):
        assert heads_of_all(kept) == heads(together)
    assert kept == pieces


@pytest.mark.usefixtures("db")
def test_days_and_hours_of_a_range_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_ruled_project()
    times = [NOW - timedelta(hours=5 * number) for number in range(150)]
    record(project, *(make_capture(id=f"{at}", conversation=None, started_at=at) for at in times))
    fold_all()
    read: list[str] = []
    load: Any = rollup_rows._load

    def note(text: str, others: Any) -> Counts:
        read.append(text)
        counts: Counts = load(text, others)
        return counts

    monkeypatch.setattr(rollup_rows, "_load", note)

    def calls() -> int:
        found = figures(
            project_id=project.id,
            marginal=Marginal.MODEL,
            since=NOW - timedelta(days=30),
            until=None,
            is_summed=True,
        )
        return found.calls if found else 0

    assert (calls(), len(read) > 20) == (145, True)
    read.clear()
    assert (calls(), read) == (145, [])


def _both(project_id: int) -> tuple[dict[Any, Counts], dict[Any, Counts]]:
    """All figures by model, as sums that are kept and as they are stored."""
    kept, stored = (
        figures(
            project_id=project_id,
            marginal=Marginal.MODEL,
            since=None,
            until=None,
            distributions=(Distribution.LATENCY_MS,),
            is_summed=is_summed,
        )
        for is_summed in (True, False)
    )
    assert kept is not None
    assert stored is not None
    return kept.totals(), stored.totals()


def _record_days_ago(project: ProjectInfo, *days: int, model: str = "a") -> None:
    record(
        project,
        *(
            make_capture(model=model, conversation=None, started_at=NOW - timedelta(days=each))
            for each in days
        ),
    )
    fold_all()


@pytest.mark.usefixtures("db")
def test_a_sum_follows_every_change_of_what_it_was_made_of() -> None:
    project = make_ruled_project()
    _record_days_ago(project, 100, 60, 30, 1)

    for change in (
        lambda: None,
        lambda: _record_days_ago(project, 0),
        lambda: _record_days_ago(project, 60),
        lambda: _record_days_ago(project, 0, 90, model="b"),
        lambda: Rollup.objects.filter(width=MONTH, key__contains="b").delete(),
        lambda: None,
    ):
        change()
        kept, stored = _both(project.id)
        assert kept == stored
        assert kept


@pytest.mark.usefixtures("db")
def test_what_is_folded_between_two_statements_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = make_ruled_project()
    _record_days_ago(project, 60, 30, 1)
    _both(project.id)
    _record_days_ago(project, 1)
    record(project, make_capture(model="a", conversation=None, started_at=NOW))
    read: Any = rollup_rows._rows
    folded: list[int] = []

    def fold_after_the_first(statement: str, values: Any) -> Any:
        rows = read(statement, values)
        if not folded:
            folded.append(1)
            folded.append(fold_all())
        return rows

    monkeypatch.setattr(rollup_rows, "_rows", fold_after_the_first)
    kept, _ = _both(project.id)

    assert folded == [1, 1]
    assert sum(counts["n"] for counts in kept.values()) == 5
