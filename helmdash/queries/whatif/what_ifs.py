"""Stored what-ifs, and the calls and fits that each of their figures is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from helmdash.answers import BLANK_IS_NULL, HIDDEN, Doc, Words, answer
from helmdash.core.evidence.suggested import Value
from helmdash.core.whatif.calls import NOW, WAS, Judge
from helmdash.core.whatif.edits import edited_rows, read_edits
from helmdash.core.whatif.fits import NotReplayable
from helmdash.core.whatif.snapshot import table_from_json
from helmdash.core.whatif.totals import OTHER_MODELS, Totals
from helmdash.queries.budgets.budgets import published_list
from helmdash.queries.lists.paging import Page, decode_number_cursor, encode_cursor
from helmdash.queries.whatif.walks import Span
from helmdash.records.models import WhatIf
from helmdash.records.models.learned.whatif import WHAT_IF_STATES


@answer("WhatIfChange")
@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfChange:
    """One column of a row. today: as it was when the what-if was asked for. Null: the default."""

    field: str
    today: Value | None
    edited: Value | None


@answer("WhatIfEdit")
@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfEdit:
    """An edit of one row, in this project alone. key "": the fallback."""

    key: str
    changes: tuple[WhatIfChange, ...]


@answer("WhatIfCounts")
@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The same under today's budgets and with the edits."""

    was: Annotated[int, Doc("Under the budgets of the moment it was asked.")]
    now: Annotated[int, Doc("With the edits.")]


@answer("WhatIfShift")
@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """Calls by their level under both; followed to them by the figure `level:<was>>now>`."""

    was: str
    now: str
    calls: int


@answer("WhatIfModel")
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCounts:
    """The calls of one model, followed by the figures of `calls` with ?model=. model_key `_OTHER`:
    of those that have no counts of their own."""

    model_key: str
    calls: int
    other_level: int
    over: Counts
    refused: Counts


@answer("WhatIfCalls")
@dataclass(frozen=True, slots=True, kw_only=True)
class CallFigures:
    """Of calls. Each figure can be followed: GET /what-ifs/{id}/items?figure=."""

    looked_at: Annotated[int, Doc("`calls`")]
    levels: Annotated[tuple[Shift, ...], Doc("`level:healthy>caution` and so on.")]
    other_level: Annotated[int, Doc("`level:other`: another level with the edits.")]
    over: Annotated[
        Counts,
        Doc(
            "`over:was`, `over:now`: prompts above input_tokens, as reported, or as estimated "
            "where nothing was reported."
        ),
    ]
    newly_over: Annotated[int, Doc("`over:new`")]
    refused: Annotated[
        Counts,
        Doc(
            "`refused:was`, `refused:now`: what the gateway refuses in the budget mode enforce, by "
            "its estimate before it sends."
        ),
    ]
    newly_refused: Annotated[int, Doc("`refused:new`")]
    priced: Annotated[Counts, Doc("`priced:was`, `priced:now`: tokens and prices are known.")]
    cost_micro_usd: Annotated[
        Counts | None,
        Doc("`priced:both`: of calls with a price under both. Null: none has one."),
    ]
    models: Annotated[tuple[ModelCounts, ...], Doc("Those with most calls first.")]


@answer("WhatIfCare")
@dataclass(frozen=True, slots=True, kw_only=True)
class CareFigures:
    """What care would have done at recorded prompts. After a clear that was not made then, the rest
    of its round is not looked at: its prompts would have been others."""

    looked_at: Annotated[int, Doc("`cared`: calls of conversations of more than one call.")]
    guided: Annotated[Counts, Doc("`guided:was`, `guided:now`: soft and hard guidances.")]
    countdowns: Annotated[Counts, Doc("`countdown:was`, `countdown:now`: begun.")]
    clears: Annotated[Counts, Doc("`clear:was`, `clear:now`: due.")]
    newly_cleared: Annotated[int, Doc("`clear:new`: at this call, but not under today's budgets.")]


@answer("WhatIfNotReplayed")
@dataclass(frozen=True, slots=True, kw_only=True)
class NotReplayed:
    """Fits that could not be made again, and why; followed by `not:<reason>`."""

    reason: NotReplayable
    fits: int


@answer("WhatIfFits")
@dataclass(frozen=True, slots=True, kw_only=True)
class FitFigures:
    """Of fits, made again to the byte under both budgets."""

    looked_at: Annotated[int, Doc("`fits`")]
    replayed: Annotated[int, Doc("`replayed`")]
    not_replayed: tuple[NotReplayed, ...]
    as_recorded: Annotated[
        int, Doc("`as_recorded`: today's budget gives the stored Trim again, to the byte.")
    ]
    otherwise: Annotated[
        int, Doc("`otherwise`: it does not: budget, rules or release are others by now.")
    ]
    changed: Annotated[int, Doc("`changed`: another Trim with the edits.")]
    trimmed: Annotated[Counts, Doc("`trimmed:was`, `trimmed:now`: something was cut.")]
    dropped: Annotated[Counts, Doc("`dropped:was`, `dropped:now`: entries were left out.")]
    too_big: Annotated[Counts, Doc("`too_big:was`, `too_big:now`: not even one entry fits.")]
    sent_bytes: Annotated[Counts, Doc("Of all catalogs together.")]
    entries: Annotated[Counts, Doc("Shown, of all catalogs together.")]


@answer("WhatIf")
@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfView:
    """Edits of budgets that were tried on recorded calls and fits, and what came of them."""

    id: str
    title: Annotated[str, BLANK_IS_NULL]
    state: Annotated[str, Words(tuple(WHAT_IF_STATES))]
    edits: tuple[WhatIfEdit, ...]
    since: Annotated[datetime | None, Doc("Null: from the first call.")]
    until: datetime
    made_by: Annotated[str, BLANK_IS_NULL]
    made_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    cancelled_by: Annotated[str, BLANK_IS_NULL]
    applied_at: datetime | None
    applied_by: Annotated[str, BLANK_IS_NULL]
    progress: Annotated[int | None, Doc("Percent; null: it has not begun.")]
    calls: CallFigures
    care: CareFigures
    fits: FitFigures
    totals: Annotated[Totals, HIDDEN]

    @property
    def is_under_way(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("waiting", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfList(Page[WhatIfView]):
    """A page of what-ifs, newest first."""

    items: tuple[WhatIfView, ...]


def page(*, project_id: int, cursor: str | None = None, limit: int = 20) -> WhatIfList:
    """What-ifs of a project, newest first. One query. Raises BadCursor."""
    rows = WhatIf.objects.filter(project_id=project_id).defer("rules").order_by("-id")
    if cursor:
        rows = rows.filter(id__lt=decode_number_cursor(cursor))
    found = list(rows[: limit + 1])
    return WhatIfList(
        items=tuple(map(view_of, found[:limit])),
        next=encode_cursor(found[limit - 1].pk) if len(found) > limit else None,
    )


def find(*, project_id: int, name: str) -> WhatIfView | None:
    """One of the project's; None where it has none of this id. One query."""
    row = WhatIf.objects.filter(project_id=project_id, name=name).defer("rules").first()
    return view_of(row) if row else None


def find_row(*, project_id: int, name: str) -> WhatIf | None:
    """Its row, with the budgets of then."""
    return WhatIf.objects.filter(project_id=project_id, name=name).first()


def judge_of(row: WhatIf) -> Judge:
    """The budgets that it compares."""
    was = table_from_json(json.loads(row.rules), published=published_list())
    rows = edited_rows(was, read_edits(row.edits), project=str(row.project_id))
    return Judge(was, was.with_rows(rows))


def span_of(row: WhatIf) -> Span:
    """The rows that it looks at."""
    return Span(project_id=row.project_id, since=row.since, until=row.until)


def view_of(row: WhatIf) -> WhatIfView:
    """A stored row as it is shown."""
    totals = Totals.from_json(row.totals)
    return WhatIfView(
        id=row.name,
        title=row.title,
        state=row.state,
        edits=tuple(_edit(each, today) for each, today in zip(row.edits, row.today, strict=True)),
        since=row.since,
        until=row.until,
        made_by=row.made_by,
        made_at=row.made_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        cancelled_by=row.cancel_by,
        applied_at=row.applied_at,
        applied_by=row.applied_by,
        progress=_progress(row),
        calls=_calls(totals),
        care=_care(totals),
        fits=_fits(totals),
        totals=totals,
    )


def _progress(row: WhatIf) -> int | None:
    if row.state == "done":
        return 100
    if row.steps_all is None:
        return None
    return min(100 * row.steps_done // max(row.steps_all, 1), 100)


def _edit(edit: Mapping[str, Any], today: Mapping[str, Any]) -> WhatIfEdit:
    return WhatIfEdit(
        key=edit["key"],
        changes=tuple(
            WhatIfChange(field=field, today=today.get(field), edited=value)
            for field, value in edit["changes"].items()
        ),
    )


def _calls(totals: Totals) -> CallFigures:
    counts, sums = totals.counts, totals.sums
    shifts = [
        Shift(was=was, now=now, calls=count)
        for name, count in sorted(counts.items())
        if name.startswith("level:") and ">" in name
        for was, now in [name.removeprefix("level:").split(">")]
    ]
    models = [
        ModelCounts(
            model_key=key,
            calls=own.get("calls", 0),
            other_level=own.get("level:other", 0),
            over=_pair(own, "over"),
            refused=_pair(own, "refused"),
        )
        for key, own in totals.models.items()
    ]
    has_cost = f"cost:{WAS}" in sums
    return CallFigures(
        looked_at=counts.get("calls", 0),
        levels=tuple(shifts),
        other_level=counts.get("level:other", 0),
        over=_pair(counts, "over"),
        newly_over=counts.get("over:new", 0),
        refused=_pair(counts, "refused"),
        newly_refused=counts.get("refused:new", 0),
        priced=_pair(counts, "priced"),
        cost_micro_usd=_pair(sums, "cost") if has_cost else None,
        models=tuple(
            sorted(
                models, key=lambda own: (own.model_key == OTHER_MODELS, -own.calls, own.model_key)
            )
        ),
    )


def _care(totals: Totals) -> CareFigures:
    counts = totals.counts
    return CareFigures(
        looked_at=counts.get("cared", 0),
        guided=_pair(counts, "guided"),
        countdowns=_pair(counts, "countdown"),
        clears=_pair(counts, "clear"),
        newly_cleared=counts.get("clear:new", 0),
    )


def _fits(totals: Totals) -> FitFigures:
    counts = totals.counts
    return FitFigures(
        looked_at=counts.get("fits", 0),
        replayed=counts.get("replayed", 0),
        not_replayed=tuple(
            NotReplayed(reason=reason, fits=counts[f"not:{reason.value}"])
            for reason in NotReplayable
            if f"not:{reason.value}" in counts
        ),
        as_recorded=counts.get("as_recorded", 0),
        otherwise=counts.get("otherwise", 0),
        changed=counts.get("changed", 0),
        trimmed=_pair(counts, "trimmed"),
        dropped=_pair(counts, "dropped"),
        too_big=_pair(counts, "too_big"),
        sent_bytes=_pair(totals.sums, "bytes"),
        entries=_pair(totals.sums, "entries"),
    )


def _pair(counts: Mapping[str, float], name: str) -> Counts:
    return Counts(
        was=round(counts.get(f"{name}:{WAS}", 0)), now=round(counts.get(f"{name}:{NOW}", 0))
    )
