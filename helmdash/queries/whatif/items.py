"""The calls or fits that a figure of a what-if is made of, found by the walk that counted them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal

from helmdash.answers import BLANK_IS_NULL, Doc, answer
from helmdash.core.budgets.levels import Level
from helmdash.core.whatif.calls import NOW, WAS, Judge, Pair
from helmdash.core.whatif.fits import NotReplayable, ReplayedFit
from helmdash.core.whatif.totals import OTHER_MODELS, Totals, fit_figures
from helmdash.queries.lists.paging import (
    Page,
    decode_pair_cursor,
    decode_time_cursor,
    encode_cursor,
)
from helmdash.queries.whatif import walks
from helmdash.queries.whatif.what_ifs import judge_of, span_of
from helmdash.records.models import Fit, WhatIf

_BOTH: Final = (WAS, NOW)
CALL_FIGURES: Final = (
    "calls",
    "level:other",
    *(f"level:{was}>{now}" for was in Level for now in Level),
    *(f"{name}:{side}" for name in ("over", "refused") for side in (*_BOTH, "new")),
    *(f"priced:{side}" for side in (*_BOTH, "both")),
)
CARE_FIGURES: Final = (
    "cared",
    *(f"{name}:{side}" for name in ("guided", "countdown", "clear") for side in _BOTH),
    "clear:new",
)
FIT_FIGURES: Final = (
    *("fits", "replayed", "as_recorded", "otherwise", "changed"),
    *(f"{name}:{side}" for name in ("trimmed", "dropped", "too_big") for side in _BOTH),
    *(f"not:{reason.value}" for reason in NotReplayable),
)
FIGURES: Final = (*CALL_FIGURES, *CARE_FIGURES, *FIT_FIGURES)

# One page looks through so many at most, so that a rare figure is no long wait: some tenths of a
# second of calls, a second of fits.
_MOST_CALLS: Final = 20_000
_MOST_FITS: Final = 100
# What a fit costs is up to its catalog: a page of them begins no step after so long.
_FIT_SECONDS: Final = 2.0


@answer("WhatIfItem")
@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfItem:
    """A call or a fit under both budgets.

    was, now: the level of a call, or the bytes of a catalog; null: not known, or not replayed.
    """

    kind: Literal["call", "fit"]
    id: str
    model: str
    at: datetime
    prompt_tokens: int | None
    level_was: Annotated[str, BLANK_IS_NULL]
    level_now: Annotated[str, BLANK_IS_NULL]
    limit_was: Annotated[int | None, Doc("Of a call: the input ceiling; of a fit: the room.")]
    limit_now: int | None
    bytes_was: int | None
    bytes_now: int | None
    entries_was: int | None
    entries_now: int | None
    cost_usd_was: Annotated[float | None, Doc("Of a call, where its tokens and prices are known.")]
    cost_usd_now: float | None
    why: Annotated[str, BLANK_IS_NULL, Doc("Why a fit was not made again.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfItems(Page[WhatIfItem]):
    """Newest first. looked_at: how many were looked through for this page; `next` goes on after
    them, also where the page has no item."""

    items: tuple[WhatIfItem, ...]
    looked_at: int


class UnknownFigure(ValueError):
    """No figure of a what-if is called so; the message names those there are."""


class NotByModel(ValueError):
    """The figure is not counted by model."""


def items_of(
    row: WhatIf, figure: str, *, model: str = "", cursor: str | None, limit: int
) -> WhatIfItems:
    """A page of what a figure counts.

    model: of this model key alone, as the counts by model name it; "": of all. Calls are judged,
    and fits made, again by the budgets that the what-if keeps; what was deleted since is not there.
    Raises UnknownFigure, NotByModel, BadCursor and BadEdits.
    """
    if figure not in FIGURES:
        raise UnknownFigure(f"must be one of {', '.join(FIGURES)}")
    if model and figure not in CALL_FIGURES:
        raise NotByModel(f"{figure} is not counted by model; leave model out")
    place = _place(cursor, figure)
    judge = judge_of(row)
    if figure in FIT_FIGURES:
        return _walk_fits(row, judge, figure, place, limit)
    if figure in CARE_FIGURES:
        return _walk_care(row, judge, figure, place, limit)
    return _walk_calls(row, judge, figure, model, place, limit)


def _walk_calls(
    row: WhatIf, judge: Judge, figure: str, model: str, place: walks.Place | None, limit: int
) -> WhatIfItems:
    found: list[WhatIfItem] = []
    looked = 0
    span = span_of(row)
    named = Totals.from_json(row.totals).models
    at: walks.Place | None = place or ()
    while at is not None and looked < _MOST_CALLS:
        pairs, at = walks.call_step(span, judge, at)
        for pair in pairs:
            looked += 1
            if model and model != (pair.model if pair.model in named else OTHER_MODELS):
                continue
            if figure in pair.figures():
                found.append(_call(pair))
                if len(found) == limit:
                    return _page(found, looked, walks.place_of_call(pair.call))
    return _page(found, looked, at)


def _walk_care(
    row: WhatIf, judge: Judge, figure: str, place: walks.Place | None, limit: int
) -> WhatIfItems:
    found: list[WhatIfItem] = []
    looked = 0
    span = span_of(row)
    # A page may end within a conversation: the next begins with it, after the last call shown.
    talk, shown = (place[0], place[1]) if place else (None, 0)
    at: walks.Place | None = () if talk is None else (talk + 1,)
    while at is not None and looked < _MOST_CALLS:
        pairs, at = walks.care_step(span, judge, at)
        for pair, figures in pairs:
            looked += 1
            call = pair.call
            is_shown = call.conversation_id == talk and (call.generation or 0) <= shown
            if (figure != "cared" and figure not in figures) or is_shown:
                continue
            found.append(_call(pair))
            if len(found) == limit:
                return _page(found, looked, (call.conversation_id, call.generation))
    return _page(found, looked, None if at is None else (at[0] - 1, 0))


def _walk_fits(
    row: WhatIf, judge: Judge, figure: str, place: walks.Place | None, limit: int
) -> WhatIfItems:
    found: list[WhatIfItem] = []
    looked = 0
    span = span_of(row)
    at: walks.Place | None = place or ()
    ends = time.monotonic() + _FIT_SECONDS
    while at is not None and looked < _MOST_FITS and (not looked or time.monotonic() < ends):
        fits, at = walks.fit_step(span, judge, at)
        for fit, replayed in fits:
            looked += 1
            if figure in fit_figures(replayed):
                found.append(_fit(fit, replayed))
                if len(found) == limit:
                    return _page(found, looked, walks.place_of_fit(fit))
    return _page(found, looked, at)


def _page(found: Sequence[WhatIfItem], looked: int, at: walks.Place | None) -> WhatIfItems:
    return WhatIfItems(
        items=tuple(found), looked_at=looked, next=None if at is None else encode_cursor(*at)
    )


def _place(cursor: str | None, figure: str) -> walks.Place | None:
    if not cursor:
        return None
    if figure in CARE_FIGURES:
        return decode_pair_cursor(cursor)
    at, pk = decode_time_cursor(cursor)
    return at.isoformat(), pk


def _call(pair: Pair) -> WhatIfItem:
    call = pair.call
    return WhatIfItem(
        kind="call",
        id=call.name,
        model=call.model,
        at=call.started_at,
        prompt_tokens=call.prompt_tokens,
        level_was=pair.was.health.level.value,
        level_now=pair.now.health.level.value,
        limit_was=pair.was.budget.input_tokens,
        limit_now=pair.now.budget.input_tokens,
        bytes_was=None,
        bytes_now=None,
        entries_was=None,
        entries_now=None,
        cost_usd_was=pair.was.cost_usd,
        cost_usd_now=pair.now.cost_usd,
    )


def _fit(row: Fit, found: ReplayedFit | NotReplayable) -> WhatIfItem:
    made = None if isinstance(found, NotReplayable) else found
    return WhatIfItem(
        kind="fit",
        id=row.name,
        model=row.model,
        at=row.created_at,
        prompt_tokens=None,
        level_was="",
        level_now="",
        limit_was=made.before.limit_bytes if made else None,
        limit_now=made.after.limit_bytes if made else None,
        bytes_was=made.before.after_bytes if made else None,
        bytes_now=made.after.after_bytes if made else None,
        entries_was=len(made.before.kept) if made else None,
        entries_now=len(made.after.kept) if made else None,
        cost_usd_was=None,
        cost_usd_now=None,
        why=found.value if isinstance(found, NotReplayable) else "",
    )
