"""A what-if as its page shows it: each figure with the way to the calls or fits it counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from helmdash.core.budgets.levels import Level
from helmdash.core.whatif.calls import NOW, WAS
from helmdash.core.whatif.edits import EDITABLE
from helmdash.core.whatif.fits import NotReplayable
from helmdash.core.whatif.totals import OTHER_MODELS
from helmdash.queries.whatif.what_ifs import ModelCounts, WhatIfView

STATE_WORDS: Final = {
    "waiting": "waits for a server",
    "running": "running",
    "done": "done",
    "cancelled": "cancelled",
    "failed": "failed; the server's log says why",
}
WHY_NOT: Final = {
    NotReplayable.NO_INTENT: "their intent is not kept (the project's texts are off or over)",
    NotReplayable.NO_INPUTS: "made by a release that did not keep what a fit is made of",
    NotReplayable.NO_CATALOG: "their catalog is not kept any more",
    NotReplayable.FILTER_ASKED: "a filter model would be asked, and nobody knows its answer",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A number; to: the address of what it counts, "" where nothing lists that."""

    value: int
    to: str = ""


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A figure under today's budgets and with the edits; beside: of the other what-if. None: it has
    no such number."""

    name: str
    help: str
    was: Cell | None
    now: Cell | None
    new: Cell | None = None
    beside: Cell | None = None
    unit: str = ""

    @property
    def change(self) -> int | None:
        """How many more with the edits; None: nothing to say."""
        if self.was is None or self.now is None or self.was.value == self.now.value:
            return None
        return self.now.value - self.was.value


@dataclass(frozen=True, slots=True)
class LevelRow:
    """Calls of one level under today's budgets, by their level with the edits."""

    level: Level
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class ModelRow:
    """Counts of the calls of one model."""

    name: str
    calls: Cell
    other_level: Cell
    over_was: Cell
    over_now: Cell


@dataclass(frozen=True, slots=True)
class ShownWhatIf:
    """A what-if with what its page adds."""

    told: WhatIfView
    standing: str
    whole: Mapping[str, Cell]
    """What was looked at and what of it differs, by the figure."""
    levels: tuple[LevelRow, ...]
    calls: tuple[FigureRow, ...]
    care: tuple[FigureRow, ...]
    fits: tuple[FigureRow, ...]
    not_replayed: tuple[tuple[Cell, str], ...]
    models: tuple[ModelRow, ...]


def names_of_figures() -> tuple[tuple[str, str], ...]:
    """What may be edited, for a menu: the field, and its name with its unit."""
    return tuple((name, field_words(name)) for name in EDITABLE)


def field_words(name: str) -> str:
    """A field of a budget for people."""
    return EDITABLE[name].words if name in EDITABLE else name.replace("_", " ")


def shown(found: WhatIfView, beside: WhatIfView | None = None) -> ShownWhatIf:
    """beside: another one, whose figures with its edits stand in a column of their own."""
    return ShownWhatIf(
        told=found,
        standing=STATE_WORDS[found.state],
        whole={each.replace(":", "_"): _cell(found, each) for each in _OTHERS},
        levels=_levels(found),
        calls=_rows(found, beside, _CALLS),
        care=_rows(found, beside, _CARE),
        fits=_rows(found, beside, _FITS),
        not_replayed=tuple(
            (_cell(found, f"not:{each.reason.value}"), WHY_NOT[each.reason])
            for each in found.fits.not_replayed
        ),
        models=tuple(_model(found, each) for each in found.calls.models),
    )


# Name in the counts or sums; name and explanation for people; whether the calls that only the edits
# bring are counted; the unit of a sum.
_Spec = tuple[str, str, str, bool, str]
_CALLS: Final[Sequence[_Spec]] = (
    ("over", "Prompts above the input ceiling", "as reported, else as estimated", True, ""),
    ("refused", "Refused by the gateway", "in the budget mode enforce", True, ""),
    ("priced", "Calls with a price", "tokens and prices are known", False, ""),
    ("cost", "Cost", "of calls with a price under both", False, "micro-USD"),
)
_CARE: Final[Sequence[_Spec]] = (
    ("guided", "Guidances", "soft and hard", False, ""),
    ("countdown", "Countdowns begun", "", False, ""),
    ("clear", "Clears", "once a round at most", True, ""),
)
_FITS: Final[Sequence[_Spec]] = (
    ("trimmed", "Catalogs cut", "something went", False, ""),
    ("dropped", "Entries left out", "of so many fits", False, ""),
    ("too_big", "Too big all the same", "not even one entry has room", False, ""),
    ("bytes", "Catalogs sent", "all together", False, "bytes"),
    ("entries", "Entries shown", "all together", False, "entries"),
)


_OTHERS: Final = {
    "calls": "Calls looked at",
    "level:other": "Another level with the edits",
    "cared": "Calls of conversations",
    "fits": "Fits looked at",
    "replayed": "Made again",
    "as_recorded": "As recorded, to the byte",
    "otherwise": "Otherwise than recorded",
    "changed": "Another Trim with the edits",
    "priced:both": "Calls with a price today and with the edits",
}
_ADDED_UP: Final = {"cost": "priced:both", "bytes": "replayed", "entries": "replayed"}
_SIDES: Final = {WAS: "today", NOW: "with the edits", "new": "only with the edits"}


def figure_words(figure: str) -> str:
    """What a figure counts, for people."""
    if figure in _OTHERS:
        return _OTHERS[figure]
    name, _, side = figure.partition(":")
    if name == "level":
        was, _, now = side.partition(">")
        return f"{was.capitalize()} today, {now} with the edits"
    if name == "not":
        return f"Not made again: {WHY_NOT[NotReplayable(side)]}"
    words = {each[0]: each[1] for each in (*_CALLS, *_CARE, *_FITS)}[name]
    return f"{words}, {_SIDES[side]}"


def model_words(key: str) -> str:
    """A model of the counts by model."""
    return "all others" if key == OTHER_MODELS else key


def items_address(name: str, figure: str, model: str = "") -> str:
    """Where the calls or fits of a figure are listed. model: its key; "": of all."""
    query = {"figure": figure, "model": model} if model else {"figure": figure}
    return f"{reverse('what-if-items', args=[name])}?{urlencode(query)}"


def _rows(
    found: WhatIfView, beside: WhatIfView | None, specs: Sequence[_Spec]
) -> tuple[FigureRow, ...]:
    rows = []
    for name, words, explained, has_new, unit in specs:
        if unit:
            was, now = _sum(found, name, WAS), _sum(found, name, NOW)
            other = _sum(beside, name, NOW) if beside else None
        else:
            was, now = _cell(found, f"{name}:{WAS}"), _cell(found, f"{name}:{NOW}")
            other = _cell(beside, f"{name}:{NOW}") if beside else None
        new = _cell(found, f"{name}:new") if has_new else None
        rows.append(FigureRow(words, explained, was, now, new, other, unit))
    return tuple(rows)


def _levels(found: WhatIfView) -> tuple[LevelRow, ...]:
    return tuple(
        LevelRow(was, tuple(_cell(found, f"level:{was}>{now}") for now in Level)) for was in Level
    )


def _model(found: WhatIfView, each: ModelCounts) -> ModelRow:
    def cell(figure: str, count: int) -> Cell:
        return Cell(count, items_address(found.id, figure, each.model_key) if count else "")

    return ModelRow(
        model_words(each.model_key),
        cell("calls", each.calls),
        cell("level:other", each.other_level),
        cell("over:was", each.over.was),
        cell("over:now", each.over.now),
    )


def _cell(found: WhatIfView, figure: str) -> Cell:
    count = found.totals.counts.get(figure, 0)
    if not count:
        return Cell(0)
    return Cell(count, items_address(found.id, figure))


def _sum(found: WhatIfView, name: str, side: str) -> Cell | None:
    """A sum with the way to what was added up; None: there is nothing to add up."""
    total = found.totals.sums.get(f"{name}:{side}")
    return None if total is None else Cell(round(total), items_address(found.id, _ADDED_UP[name]))
