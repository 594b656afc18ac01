"""A what-if as its page shows it: each figure with the way to the calls or fits it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from helmdash.core.budgets.levels import Level
from helmdash.core.text.time_ranges import TimeRange
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
    """The calls of one model, with the way to them; to: "" of several."""

    told: ModelCounts
    name: str
    to: str


@dataclass(frozen=True, slots=True)
class ShownWhatIf:
    """A what-if with what its page adds."""

    told: WhatIfView
    standing: str
    range: str
    levels: tuple[LevelRow, ...]
    calls: tuple[FigureRow, ...]
    care: tuple[FigureRow, ...]
    fits: tuple[FigureRow, ...]
    changed: Cell
    as_recorded: Cell
    otherwise: Cell
    not_replayed: tuple[tuple[Cell, str], ...]
    models: tuple[ModelRow, ...]


def names_of_figures() -> tuple[tuple[str, str], ...]:
    """What may be edited, for a menu: the field, and its name with its unit."""
    return tuple((name, field_words(name)) for name in EDITABLE)


def field_words(name: str) -> str:
    """A field of a budget for people."""
    label = EDITABLE[name].label if name in EDITABLE else None
    words = (label.name if label and label.name else name).replace("_", " ")
    return f"{words}, {label.unit}" if label and label.unit else words


def shown(found: WhatIfView, beside: WhatIfView | None = None) -> ShownWhatIf:
    """beside: another one, whose figures with its edits stand in a column of their own."""
    return ShownWhatIf(
        told=found,
        standing=STATE_WORDS[found.state],
        range=TimeRange(since=found.since, until=found.until).exact,
        levels=_levels(found),
        calls=_rows(found, beside, _CALLS),
        care=_rows(found, beside, _CARE),
        fits=_rows(found, beside, _FITS),
        changed=_cell(found, "changed"),
        as_recorded=_cell(found, "as_recorded"),
        otherwise=_cell(found, "otherwise"),
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
}
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


def _rows(
    found: WhatIfView, beside: WhatIfView | None, specs: Sequence[_Spec]
) -> tuple[FigureRow, ...]:
    rows = []
    for name, words, explained, has_new, unit in specs:
        if unit:
            has_sum = f"{name}:{WAS}" in found.totals.sums
            was = _sum(found, f"{name}:{WAS}") if has_sum else None
            now = _sum(found, f"{name}:{NOW}") if has_sum else None
            other = _sum(beside, f"{name}:{NOW}") if beside else None
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
    if each.model_key == OTHER_MODELS:
        return ModelRow(each, "all others", "")
    span = TimeRange(since=found.since, until=found.until).exact or "all"
    query = urlencode({"model": each.model_key, "range": span})
    return ModelRow(each, each.model_key, f"{reverse('calls')}?{query}")


def _cell(found: WhatIfView, figure: str) -> Cell:
    count = found.totals.counts.get(figure, 0)
    if not count:
        return Cell(0)
    address = reverse("what-if-items", args=[found.id])
    return Cell(count, f"{address}?{urlencode({'figure': figure})}")


def _sum(found: WhatIfView, name: str) -> Cell:
    return Cell(round(found.totals.sums.get(name, 0)))
