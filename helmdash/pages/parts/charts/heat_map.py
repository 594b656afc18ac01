"""Which model breaks at which prompt size: shares of clean calls as cells of a table.

A cell says its share, of how many, and the 95 % interval; its shade only repeats that, and is left
out where so few calls say nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Final
from urllib.parse import urlencode

from helmdash.core.rollups.facts import BAND_LABELS, NO_VARIANT
from helmdash.queries.models import ModelRow, Rate, rate

# With fewer calls even those that were all clean may be of a model that fails one in four: Wilson's
# interval of 10 of 10 goes down to 72 %.
LEAST_CALLS: Final = 10
# Rows that somebody reads, of some 1.5 kB each; the filters find the others.
MOST_ROWS: Final = 40
# Clean shares from which on a shade holds, with its words, the worst first.
SHADES: Final = (
    (0.0, "heat-1", "under 50 %"),
    (0.5, "heat-2", "50 to 75 %"),
    (0.75, "heat-3", "75 to 90 %"),
    (0.9, "heat-4", "90 to 98 %"),
    (0.98, "heat-5", "98 % and more"),
)
_FEW: Final = "heat-few"


class Rows(StrEnum):
    """What has a row of its own: each model, or each with every purpose, or with every variant of
    the prompt."""

    MODEL = "model"
    PURPOSE = "purpose"
    VARIANT = "variant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Clean calls of a row in one band of sizes. band: "" for the whole row; query: of the address
    that lists its calls."""

    band: str
    clean: Rate
    shade: str
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """A model with its cells. model: as ModelRow.name. part: its purpose or variant, "" where it is
    not told apart."""

    model: str
    model_key: str
    part: str
    cells: tuple[Cell, ...]
    whole: Cell
    unsized: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """The rows, the worst first; left_out: how many more there are."""

    by: Rows
    bands: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    left_out: int
    has_unsized: bool


def heat_map(rows: Iterable[ModelRow], *, by: Rows, carried: Mapping[str, str]) -> HeatMap:
    """Lay the rows of models out by size.

    The worst is the row with the cell that is most surely bad: the least upper end of an interval,
    which is wide where calls are few. carried: what addresses of calls say besides, such as the
    range.
    """
    ordered = sorted(rows, key=lambda row: _place(row, by))
    found = [
        _row(list(group), by, carried)
        for _, group in groupby(ordered, key=lambda row: _place(row, by))
    ]
    found.sort(key=lambda row: (_worst(row), -row.whole.clean.n, row.model_key, row.part))
    shown = tuple(found[:MOST_ROWS])
    return HeatMap(
        by=by,
        bands=BAND_LABELS,
        rows=shown,
        left_out=len(found) - len(shown),
        has_unsized=any(row.unsized for row in shown),
    )


def _place(row: ModelRow, by: Rows) -> tuple[str, str]:
    match by:
        case Rows.MODEL:
            return row.model_key, ""
        case Rows.PURPOSE:
            return row.model_key, row.purpose
        case Rows.VARIANT:
            return row.model_key, row.prompt_variant or NO_VARIANT


def _row(rows: Sequence[ModelRow], by: Rows, carried: Mapping[str, str]) -> HeatRow:
    model = max(rows, key=lambda row: row.calls)
    _, part = _place(model, by)
    said = {**model.asked(), **({by.value: part} if part else {}), **carried}
    clean: defaultdict[str, int] = defaultdict(int)
    calls: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        for band, told in (("", row.clean), *((each.label, each.clean) for each in row.bands)):
            clean[band] += told.count
            calls[band] += told.n
    cells = {band: _cell(band, rate(clean[band], calls[band]), said) for band in calls}
    return HeatRow(
        model=model.name,
        model_key=model.model_key,
        part=part,
        cells=tuple(cells[label] for label in BAND_LABELS),
        whole=cells[""],
        unsized=sum(row.unsized for row in rows),
    )


def _cell(band: str, clean: Rate, said: Mapping[str, str]) -> Cell:
    return Cell(
        band=band,
        clean=clean,
        shade=_shade(clean),
        query=urlencode({**said, **({"size": band} if band else {})}),
    )


def _shade(clean: Rate) -> str:
    if clean.share is None:
        return "heat-none"
    if clean.n < LEAST_CALLS:
        return _FEW
    share = clean.share
    return next(name for least, name, _ in reversed(SHADES) if share >= least)


def _worst(row: HeatRow) -> float:
    """Beyond all others where no call says anything."""
    highs = (cell.clean.high for cell in (*row.cells, row.whole))
    return min((high for high in highs if high is not None), default=2.0)
