"""Running what-ifs: in bounded steps, saved with their place, so that any process can go on.

What is counted is saved together with where that ends: nothing is counted twice or left out when
a server stops or is killed in the middle.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.db.models.functions import Now

from helmdash.core.whatif.calls import Judge
from helmdash.core.whatif.totals import Totals
from helmdash.operations.database.transactions import write
from helmdash.operations.recorder.group_commit import is_unavailable
from helmdash.operations.whatif.asking import UNDER_WAY
from helmdash.queries.whatif import walks
from helmdash.queries.whatif.kept_fits import forget_catalogs
from helmdash.queries.whatif.what_ifs import judge_of, span_of
from helmdash.records.models import WhatIf

logger = logging.getLogger(__name__)

# One run looks at so many, the newest of the range; who wants others takes another range. A
# million calls are a minute or two, and ten thousand fits of a catalog of 75 entries about one.
MOST_CALLS: Final = 1_000_000
MOST_FITS: Final = 20_000
# How often it is saved: what a process that is killed has done in vain.
_SAVE_SECONDS: Final = 1.0
# Then a what-if of another project goes on, so that none waits for minutes of all the others'.
_TURN_SECONDS: Final = 10.0
# A fifth of the time belongs to the other threads of the server.
_REST_SHARE: Final = 0.25
_LONGEST_REST: Final = 0.05
# A fit costs as much as some hundred calls; so the share that is done grows evenly.
_CALLS_OF_A_FIT: Final = 100

Tell = Callable[[str, int, int], None]


def is_due(now: datetime) -> bool:
    """Whether one waits, or was left in the middle."""
    return WhatIf.objects.filter(state__in=UNDER_WAY).exists()


def run_all(tell: Tell) -> int:
    """Run all that wait: of each project the oldest first, and projects in turns of _TURN_SECONDS.
    How many were ended. tell: hears a sentence and how many steps of how many are done, and may
    raise to end it here."""
    ended = project_id = 0
    # What a page looked for and did not find may have been stored since.
    forget_catalogs()
    try:
        while (row := _next(project_id)) is not None:
            project_id = row.project_id
            ended += _run(row, tell)
    finally:
        forget_catalogs()
    return ended


def _next(before: int) -> WhatIf | None:
    """The oldest of the project whose turn it is after another one's."""
    rows = WhatIf.objects.filter(state__in=UNDER_WAY).order_by("project_id", "id")
    return rows.filter(project_id__gt=before).first() or rows.first()


def _is_awaited(project_id: int) -> bool:
    """Whether another project waits for its turn."""
    return WhatIf.objects.filter(state__in=UNDER_WAY).exclude(project_id=project_id).exists()


@dataclass(slots=True)
class _Standing:
    """How far a run is. phase: of _PHASES; looked: at how many rows in this phase."""

    totals: Totals
    phase: int = 0
    place: walks.Place = ()
    looked: int = 0
    done: int = 0
    saved_at: float = field(default_factory=time.monotonic)

    def to_json(self) -> dict[str, object]:
        return {"phase": self.phase, "place": list(self.place), "looked": self.looked}


def _run(row: WhatIf, tell: Tell) -> bool:
    """Whether it has ended; else the turn is another project's, and its place is saved."""
    turn_ends = time.monotonic() + _TURN_SECONDS
    try:
        asked = _Asked(span_of(row), judge_of(row))
        calls = walks.count_calls(asked.span, MOST_CALLS)
        fits = walks.count_fits(asked.span, MOST_FITS)
    except Exception as error:
        _fail(row, error)
        return True
    # Every call is looked at twice: by itself, and in its conversation.
    ends = (calls, 2 * calls, 2 * calls + _CALLS_OF_A_FIT * fits)
    stored: dict[str, Any] = row.cursor or {}
    standing = _Standing(
        totals=Totals.from_json(row.totals),
        phase=stored.get("phase", 0),
        place=stored.get("place", ()),
        looked=stored.get("looked", 0),
        done=row.steps_done,
    )
    WhatIf.objects.filter(pk=row.pk, state="waiting").update(state="running", started_at=Now())
    WhatIf.objects.filter(pk=row.pk).update(steps_all=ends[-1])
    while standing.phase < len(_PHASES):
        words, step, cost, most = _PHASES[standing.phase]
        tell(f"{row.name}: {words}", standing.done, ends[-1])
        began = time.monotonic()
        try:
            looked, place = step(asked, standing)
        except Exception as error:
            _fail(row, error)
            return True
        standing.looked += looked
        standing.done = min(standing.done + looked * cost, ends[standing.phase])
        if place is None or standing.looked >= most:
            standing.done = ends[standing.phase]
            standing.phase, standing.place, standing.looked = standing.phase + 1, (), 0
        else:
            standing.place = place
        if time.monotonic() - standing.saved_at > _SAVE_SECONDS and not _save(row, standing):
            return True  # somebody has cancelled it
        if time.monotonic() > turn_ends:
            if _is_awaited(row.project_id):
                return not _save(row, standing)
            turn_ends = time.monotonic() + _TURN_SECONDS
        time.sleep(min((time.monotonic() - began) * _REST_SHARE, _LONGEST_REST))
    _save(row, standing, state="done", ended_at=Now())
    return True


class _Asked(NamedTuple):
    span: walks.Span
    judge: Judge


def _calls(of: _Asked, standing: _Standing) -> tuple[int, walks.Place | None]:
    pairs, place = walks.call_step(of.span, of.judge, standing.place)
    for pair in pairs:
        standing.totals.add_call(pair)
    return len(pairs), place


def _care(of: _Asked, standing: _Standing) -> tuple[int, walks.Place | None]:
    found, place = walks.care_step(of.span, of.judge, standing.place)
    for _, figures in found:
        standing.totals.add(figures)
    standing.totals.add(["cared"] * len(found))
    return len(found), place


def _fits(of: _Asked, standing: _Standing) -> tuple[int, walks.Place | None]:
    found, place = walks.fit_step(of.span, of.judge, standing.place)
    for _, replayed in found:
        standing.totals.add_fit(replayed)
    return len(found), place


_PHASES: Final = (
    ("judging calls", _calls, 1, MOST_CALLS),
    ("counting what care would do", _care, 1, MOST_CALLS),
    ("making fits again", _fits, _CALLS_OF_A_FIT, MOST_FITS),
)


def _save(row: WhatIf, standing: _Standing, **more: Any) -> bool:
    """False: it is not under way any more."""
    rows = WhatIf.objects.filter(pk=row.pk, state="running")
    saved = write(
        lambda: rows.update(
            cursor=standing.to_json(),
            totals=standing.totals.to_json(),
            steps_done=standing.done,
            **more,
        )
    )
    standing.saved_at = time.monotonic()
    return bool(saved)


def _fail(row: WhatIf, error: Exception) -> None:
    """One that cannot be run must not keep the others waiting. Raises what the database raises when
    it is unavailable."""
    if is_unavailable(error):
        raise error
    logger.exception("the what-if %s failed", row.name)
    rows = WhatIf.objects.filter(pk=row.pk, state__in=UNDER_WAY)
    write(lambda: rows.update(state="failed", ended_at=Now()))
