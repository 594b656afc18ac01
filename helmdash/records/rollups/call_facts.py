"""Facts of calls out of their rows, and as all facts wait to be counted (core.rollups.facts)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import orjson
from django.db.models import QuerySet

from helmdash.core.rollups.facts import COLUMNS, CallFacts
from helmdash.core.rollups.figures import Change, Facts
from helmdash.core.rollups.fit_facts import FitFacts
from helmdash.core.rollups.periods import quarter_of
from helmdash.core.rollups.plan_facts import PlanFacts
from helmdash.records.models import Call
from helmdash.records.statements.column_values import storable

_columns = itemgetter(*COLUMNS)
# In the order of their lists while they wait.
_KINDS: Final[tuple[type[Facts], ...]] = (CallFacts, FitFacts, PlanFacts)


def facts_of_row(row: Mapping[str, Any]) -> CallFacts:
    """Of a row that is about to be inserted, by attribute name."""
    return CallFacts(quarter_of(row["started_at"]), *_columns(row))


def facts_of(rows: QuerySet[Call]) -> list[CallFacts]:
    """Of stored rows; one query."""
    return list(facts_of_values(rows.values_list("started_at", *COLUMNS)))


def facts_of_values(rows: Iterable[Sequence[Any]]) -> Iterator[CallFacts]:
    """Of rows that hold the time of a call and COLUMNS."""
    for row in rows:
        yield CallFacts(quarter_of(row[0]), *row[1:])


def dump_changes(changes: Sequence[Change]) -> str:
    """Lists in JSON: facts of calls that were true before, and that are true now; where there are
    fits, two more of theirs, and where there are plans, two more after those.

    What no database stores is written as it is stored with the calls, so that both stay equal.
    """
    told: list[list[tuple[Any, ...]]] = [[] for _ in _KINDS for _ in range(2)]
    for change in changes:
        for place, facts in enumerate(change):
            if facts is not None:
                told[2 * _KINDS.index(type(facts)) + place].append(tuple(facts))
    while len(told) > 2 and not told[-1] and not told[-2]:
        del told[-2:]
    try:
        text = orjson.dumps(told).decode()
    except orjson.JSONEncodeError:  # lone surrogates
        return json.dumps(storable(told))
    return json.dumps(storable(told)) if "\\u0000" in text else text


def load_changes(text: str) -> Iterator[Change]:
    """What `dump_changes` wrote."""
    for place, told in enumerate(orjson.loads(text)):
        make = _KINDS[place // 2]
        for values in told:
            facts = make(*values)
            yield (None, facts) if place % 2 else (facts, None)
