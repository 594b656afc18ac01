"""A row of the budget table as the page shows it: its lines in words, its prompts as a drawing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.rollups.spread import BARS, Shift, Spread
from helmdash.pages.parts import words
from helmdash.pages.parts.budgets.figure_sources import caution_default, critical_default
from helmdash.pages.parts.charts import drawings
from helmdash.queries.budgets.budget_use import RowEffect, RowUse

# A bar of 4 px, with a pixel between two.
_BAR, _HEIGHT = 4, 26
_LEAST: Final = 1.5  # px: a single prompt among a million is still seen
_MODELS_NAMED: Final = 2
_PLAIN: Final = re.compile(r"[\w./@+-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBar:
    """One bar: its left edge, top and height (px), and its color."""

    x: int
    y: float
    height: float
    css_class: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSpread:
    """A small distribution; ticks: where the lines stand, with their class. text: the same in
    words."""

    width: int
    height: int
    bars: tuple[ShownBar, ...]
    ticks: tuple[tuple[float, str], ...]
    scale: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownModel:
    """A model that the row governs, and the address of its explanation."""

    model: str
    calls: int
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """What the page shows of a row. optimal_from, critical_from: "" where the row sets the line.
    calls, prompts: addresses of the calls whose model its key fits, and of those of its spread."""

    told: RowUse
    optimal_from: str
    critical_from: str
    spread: ShownSpread | None
    models: tuple[ShownModel, ...]
    more_models: int
    calls: str
    prompts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEffect:
    """What an edit of a row would do."""

    told: RowEffect
    spread: ShownSpread | None
    shifts: tuple[Shift, ...]


def shown_row(use: RowUse) -> ShownRow:
    """A row with what the page adds."""
    lines = use.lines
    return ShownRow(
        told=use,
        optimal_from=caution_default(lines) if lines else "",
        critical_from=critical_default(lines) if lines else "",
        spread=shown_spread(use.spread, lines) if use.spread and lines else None,
        models=tuple(
            ShownModel(
                model=each.model,
                calls=each.calls,
                address=f"{reverse('budgets')}?{urlencode({'model': each.model})}",
            )
            for each in use.models[:_MODELS_NAMED]
        ),
        more_models=max(len(use.models) - _MODELS_NAMED, 0),
        calls=calls_of(use.row.budget.key),
        prompts=calls_of(use.row.budget.key, range="30d"),
    )


def shown_effects(effects: Sequence[RowEffect]) -> tuple[ShownEffect, ...]:
    """Effects with their drawings."""
    return tuple(
        ShownEffect(
            told=each,
            spread=shown_spread(each.spread, each.after) if each.spread else None,
            shifts=each.shifts,
        )
        for each in effects
    )


def calls_of(key: str, **also: str) -> str:
    """The address of the calls whose model a key fits; all calls for the fallback's."""
    # A key that a query could not say without quotes has no `*` behind it either.
    query = {"query": f"model:{key}*", **also} if _PLAIN.fullmatch(key) else also
    return f"{reverse('calls')}?{urlencode(query)}" if query else reverse("calls")


def shown_spread(spread: Spread, budget: EffectiveBudget) -> ShownSpread:
    """The drawing of prompts against the lines of a budget."""
    most = max(each.prompts for each in spread.bars)
    bars = []
    for place, each in enumerate(spread.bars):
        if each.prompts:
            height = round(max(_HEIGHT * each.prompts / most, _LEAST), 1)
            bars.append(
                ShownBar(
                    x=place * _BAR,
                    y=round(_HEIGHT - height, 1),
                    height=height,
                    css_class=LEVELS[each.level].css_class,
                )
            )
    width = BARS * _BAR
    lines = (
        (budget.optimal_max_tokens, "at-caution"),
        (budget.critical_max_tokens, "at-critical"),
        (budget.limit_tokens, "at-limit"),
    )
    return ShownSpread(
        width=width,
        height=_HEIGHT,
        bars=tuple(bars),
        ticks=tuple(
            (round(min(width * at / spread.scale, width - 0.5), 1), name)
            for at, name in lines
            if at is not None and at <= spread.scale
        ),
        scale=drawings.short(spread.scale),
        text=_in_words(spread),
    )


def _in_words(spread: Spread) -> str:
    counts: dict[Level, int] = {}
    for each in spread.bars:
        counts[each.level] = counts.get(each.level, 0) + each.prompts
    shares = ", ".join(
        f"{words.rounded(count / spread.prompts)} {LEVELS[level].word.lower()}"
        for level, count in counts.items()
        if count
    )
    return f"{spread.prompts:,} prompts, from 0 to {spread.scale:,} tokens: {shares}"
