"""What recorded calls show of each model, read from rollups: no call is read (docs/evidence.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

import orjson

from helmdash.core.evidence.learning import Told, learn
from helmdash.core.evidence.suggested import Learned
from helmdash.core.rollups.evidence_facts import key_of_evidence
from helmdash.core.rollups.facts import CallFacts
from helmdash.core.rollups.figures import Change, Counts, Key, Marginal, add, tally
from helmdash.core.rollups.periods import (
    Span,
    Width,
    first_quarter,
    moment_of,
    period_of,
    quarter_of,
)
from helmdash.queries.budgets import budgets
from helmdash.queries.rollups import MOST_UNCOUNTED, counted_down_to
from helmdash.records.models import RollupState
from helmdash.records.rollups.rollup_rows import Stored, read_spans

# What is older tells of other versions and other uses.
LOOKS_BACK: Final = timedelta(days=90)
# Models with fewer calls show nothing; of more models than this those with the most calls.
LEAST_CALLS: Final = 50
MOST_MODELS: Final = 100
# Stretches of time from the widest on, and of how many there have to be some with calls; else
# narrower ones tell what happened when. Days: one is at most a fiftieth of the record then, as long
# as a block of like calls was in the fleets that the methods were judged by (six of 300 calls).
# A model that is busy all the time has 24 times as many hours, which take a second to read.
_WIDTHS: Final = ((Width.DAY, 50), (Width.HOUR, 72), (Width.QUARTER, 0))


def models_to_learn(*, project_id: int, now: datetime) -> Mapping[str, str]:
    """The models that have enough calls, by key, most calls first, each with the digest of what is
    counted of its calls: another one where a call came, changed or went. Two queries.

    Nothing while calls from before an upgrade are still to be counted.
    """
    if not _is_counted(project_id):
        return {}
    by_model: dict[str, dict[tuple[Key, int], Counts]] = {}
    for key, month, counts in _by_month(_read(project_id, Width.MONTH, now, words=None)):
        add(by_model.setdefault(key[0], {}).setdefault((key, month), {}), counts)
    calls = Counter(
        {
            model: sum(counts.get("n", 0) for counts in places.values())
            for model, places in by_model.items()
        }
    )
    return {
        model: _digest(by_model[model])
        for model, n in calls.most_common(MOST_MODELS)
        if n >= LEAST_CALLS
    }


def _by_month(stored: Stored) -> Iterator[tuple[Key, int, Counts]]:
    """What is in the rollups, and what waits to be: together they are the same before and after."""
    for key, rows in stored.figures.items():
        for _, month, counts in rows:
            yield key, month, counts
    for (quarter, _, key), counts in tally(stored.uncounted, only=Marginal.EVIDENCE).items():
        yield key, period_of(Width.MONTH, quarter), counts


def _digest(places: Mapping[tuple[Key, int], Counts]) -> str:
    told = sorted(
        (key, month, sorted((word, n) for word, n in counts.items() if n))
        for (key, month), counts in places.items()
    )
    return blake2b(orjson.dumps(told), digest_size=16).hexdigest()


def learned_of(
    *, project_id: int, model_key: str, model: str, now: datetime, with_parts: bool = False
) -> tuple[Learned, ...]:
    """What the calls of a model show: all, then those of each upstream. Empty where it has none.

    model: how its budget is looked up. with_parts: also of each purpose and prompt variant. At most
    three queries more than the budget's.
    """
    width, told = _told(project_id, model_key, now)
    if not told:
        return ()
    budget = budgets.table(project_id=project_id).lookup(model, key=model_key)
    quarters = [each.at for each in told]
    end = moment_of(first_quarter(width, period_of(width, max(quarters)) + 1))
    return learn(
        model_key=model_key,
        told=told,
        budget=budget,
        since=moment_of(min(quarters)),
        # What comes after now, in the stretch that goes on, is not counted.
        until=min(end, now) if now > moment_of(max(quarters)) else end,
        with_parts=with_parts,
    )


def latest_spelling(*, project_id: int, model_key: str, now: datetime) -> str:
    """How the model is spelt that has this key: as in the newest month; the key where none is."""
    stored = read_spans(
        project_id=project_id,
        marginal=Marginal.MODEL,
        spans=[Span(Width.MONTH, period_of(Width.MONTH, quarter_of(now - LOOKS_BACK)), None)],
        most_uncounted=0,
        words=[model_key],
    )
    spelt: list[tuple[int, int, str]] = []
    for rows in stored.figures.values():
        for _, period, counts in rows:
            names = ((word[2:], n) for word, n in counts.items() if word.startswith("s:"))
            spelt.extend((period, n, name) for name, n in names)
    return max(spelt, default=(0, 0, model_key))[2]


def _is_counted(project_id: int) -> bool:
    state = RollupState.objects.filter(project_id=project_id).first()
    return state is None or counted_down_to(state, Marginal.EVIDENCE) is None


def _told(project_id: int, model_key: str, now: datetime) -> tuple[Width, list[Told]]:
    for width, least in _WIDTHS:
        stored = _read(project_id, width, now, words=[model_key])
        told = [*_of_rows(stored, width), *_of_waiting(stored, width, model_key)]
        if len({each.at for each in told}) >= least:
            return width, told
    raise AssertionError("unreachable: the last width returns")


def _read(project_id: int, width: Width, now: datetime, words: Sequence[str] | None) -> Stored:
    first = period_of(width, quarter_of(now - LOOKS_BACK))
    return read_spans(
        project_id=project_id,
        marginal=Marginal.EVIDENCE,
        spans=[Span(width, first, None)],
        most_uncounted=MOST_UNCOUNTED,
        words=words,
    )


# Stretches of time are numbered by the quarter-hour that they begin with.
def _of_rows(stored: Stored, width: Width) -> Iterator[Told]:
    for key, rows in stored.figures.items():
        for _, period, counts in rows:
            yield _told_of(first_quarter(width, period), key, counts)


def _of_waiting(stored: Stored, width: Width, model_key: str) -> Iterator[Told]:
    """What is not in the rollups yet, added to nothing: a call that was changed takes away."""
    places = tally(
        (change for change in stored.uncounted if _is_of(change, model_key)),
        only=Marginal.EVIDENCE,
    )
    found: dict[tuple[int, Key], Counts] = {}
    for (quarter, _, key), counts in places.items():
        if key[0] == model_key:
            at = first_quarter(width, period_of(width, quarter))
            add(found.setdefault((at, key), {}), counts)
    for (at, key), counts in found.items():
        yield _told_of(at, key, counts)


def _told_of(at: int, key: Key, counts: Counts) -> Told:
    _, upstream, version, purpose, variant = key
    return Told(at, upstream, version, purpose, variant, counts)


def _is_of(change: Change, model_key: str) -> bool:
    return any(
        isinstance(facts, CallFacts) and key_of_evidence(facts)[0] == model_key for facts in change
    )
