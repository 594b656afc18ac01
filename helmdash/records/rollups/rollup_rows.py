"""Rows of rollups and what waits beside them, read in one statement each.

Both are read by one statement because a fold moves figures from the one to the other: two
statements could see them in both, or in neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson
from django.db import connection

from helmdash.core.rollups.facts import COLUMNS, CallFacts
from helmdash.core.rollups.figures import (
    CALLS,
    Change,
    Counts,
    Distribution,
    Key,
    Marginal,
    apart,
    with_only,
)
from helmdash.core.rollups.fit_facts import FitFacts
from helmdash.core.rollups.periods import Span, Width, moment_of
from helmdash.core.rollups.plan_facts import RUNNING, PlanFacts
from helmdash.records.models import Call, Fit, PlanRecord, Rollup, UncountedCalls
from helmdash.records.querysets import moment
from helmdash.records.replica import connection_for
from helmdash.records.rollups.call_facts import facts_of_values, load_changes
from helmdash.records.rollups.fit_facts import steps_of
from helmdash.records.rollups.kept_sums import Row, Versioned, VersionedSum, summed
from helmdash.records.rollups.rollup_keys import AskedKeys

_ROLLUPS = Rollup._meta.db_table
_UNCOUNTED = UncountedCalls._meta.db_table
_CALLS = Call._meta.db_table
# Nothing is before the first of these, and nothing after the other.
_LEAST, _MOST = -(2**62), 2**62


# Where each distribution is kept.
COLUMN_OF: Final = {
    Distribution.PROMPT_TOKENS: "prompt_tokens",
    Distribution.FULLNESS: "fullness",
    Distribution.LATENCY_MS: "latency",
    Distribution.TTFT_MS: "ttft",
    Distribution.ESTIMATE_RATIO: "estimate",
}
_ALL_FIGURES: Final = ", ".join(["figures", *COLUMN_OF.values()])


class Slot(NamedTuple):
    """The place of a row: whose figures, of which period."""

    marginal: str
    width: int
    period: int
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Figures by key, as rollups have them, and the changes that are not in them yet.

    is_behind: more waits than was read.
    """

    figures: dict[Key, list[tuple[Width, int, Counts]]] = field(default_factory=dict)
    uncounted: list[Change] = field(default_factory=list)
    is_behind: bool = False


def read_spans(
    *,
    project_id: int,
    marginal: Marginal,
    spans: Sequence[Span],
    most_uncounted: int,
    words: Sequence[str] | None = None,
    fits: Callable[[Key], bool] | None = None,
    distributions: Collection[Distribution] = (),
    is_summed: bool = False,
    heads: Collection[str] | None = None,
    ends: Sequence[str] = (),
    is_complete: bool = False,
) -> Stored:
    """The figures of a marginal in some spans, and the oldest of what waits. One statement; a
    second for what has changed since it was summed (PostgreSQL), and a third where that changes
    meanwhile.

    words: only keys that begin with one of them; None: every key. ends: what a stored key ends with
    (`key_end`), all of them. fits: only keys of which it is true, as far as they are stored; what
    waits is told whole. is_complete: no call is left to be counted, so months have every key.
    distributions: those that are wanted of what is stored. is_summed: who reads needs no period
    apart (records.rollups.kept_sums). heads: of plain counts only the calls and the words under
    these heads (core.rollups.figures), which hold no quotes; None: all.
    """
    keys = AskedKeys(project_id, marginal, words, ends, is_complete=is_complete)
    asked = _Asked(project_id, marginal, spans, most_uncounted, keys, distributions, heads)
    has_versions = connection_for(Rollup).vendor == "postgresql"
    if is_summed and has_versions:
        found, long = asked.read(fits, has_texts=False, is_apart=False)
        if asked.add_sums(found, long):
            return found
    found, long = asked.read(fits, has_texts=True, is_apart=not is_summed)
    for (key, width), rows in long.items():
        told = summed(asked.place(key, width), [each.row for each in rows], asked.load)
        found.figures.setdefault(key, []).extend(told)
    return found


# What tells that the figures of a row on PostgreSQL are still the same: who wrote it, where it
# lies, and which server has numbered who wrote it, since when. Where another one takes over that
# had less, or one begins anew without what was not on its disk, the numbers of the lost come again.
# When it was started does not tell all: it begins anew by itself where one of its processes is
# killed, and its statistics with it.
_COUNTED_BY: Final = (
    "(SELECT hashtextextended(concat(pg_postmaster_start_time(),"
    " pg_stat_get_bgwriter_stat_reset_time()), 0)::text)"
)
_VERSIONS: Final = f"id, xmin::text || ctid::text || {_COUNTED_BY}"
# A year of bars is thousands of rows, of which each is looked up here.
_WIDTHS: Final = {each.value: each for each in Width}
_QUARTER: Final = Width.QUARTER.value
_LongRows = dict[tuple[Key, int], list[Versioned]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a reader of spans has asked for."""

    project_id: int
    marginal: Marginal
    spans: Sequence[Span]
    most_uncounted: int
    keys: AskedKeys
    distributions: Collection[Distribution]
    heads: Collection[str] | None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(COLUMN_OF[each] for each in self.distributions)

    def place(self, key: Key, width: int) -> Hashable:
        """Under which a sum is kept."""
        alias = connection_for(Rollup).alias
        heads = None if self.heads is None else (*self.heads,)
        return (alias, self.project_id, self.marginal, self.columns, heads, key, width)

    def load(self, row: Row) -> Counts:
        """The figures of a row that are wanted."""
        if self.heads is not None:
            told = _words_under(tuple(self.heads)).findall(row.figures)
            return {word: int(count) for word, count in told}
        counts = _load(row.figures, row.distributions)
        is_whole = any(word in row.figures for word in _WHOLE)
        return with_only(counts, self.distributions) if is_whole else counts

    def read(
        self, fits: Callable[[Key], bool] | None, *, has_texts: bool, is_apart: bool
    ) -> tuple[Stored, _LongRows]:
        """Quarter-hours and what waits; and rows of wider periods by key and width, with their
        figures, or with their versions alone. is_apart: wider periods with the quarter-hours."""
        found = Stored()
        waiting = 0
        # Every period has the same keys: each is looked at once.
        keys: dict[str, Key | None] = {}
        long: _LongRows = {}
        for width, period, stored_key, pk, version, text, *others in _rows(
            *self._statement(has_texts)
        ):
            if width < 0:
                waiting += 1
                if waiting <= self.most_uncounted:
                    found.uncounted.extend(load_changes(text))
                continue
            if stored_key not in keys:
                read = tuple(orjson.loads(stored_key))
                keys[stored_key] = read if fits is None or fits(read) else None
            key = keys[stored_key]
            if key is None:
                continue
            row = Row(width, period, text, tuple(others))
            # A quarter-hour is seldom in the next reader's range as well.
            if is_apart or width == _QUARTER:
                found.figures.setdefault(key, []).append((_WIDTHS[width], period, self.load(row)))
            else:
                long.setdefault((key, width), []).append(Versioned(pk, version, row))
        is_behind = waiting > self.most_uncounted
        return replace(found, is_behind=is_behind), long

    def _statement(self, has_texts: bool) -> tuple[str, list[Any]]:
        figures = ", ".join(["figures", *self.columns])
        nothing = ", ".join(["NULL"] * len(self.columns))
        pieces: list[str] = []
        values: list[Any] = []
        for span in self.spans:
            if has_texts or span.width is Width.QUARTER:
                told = f"0, '', {figures}"
            else:
                told = ", ".join(filter(None, [_VERSIONS, "''", nothing]))
            narrowed, those = self.keys.within(span)
            of_span = f"SELECT width, period, key, {told} FROM {_ROLLUPS}{_OF_SPAN}{narrowed}"
            pieces.append(of_span)
            first = _LEAST if span.first is None else span.first
            end = _MOST if span.end is None else span.end
            values += [self.project_id, self.marginal.value, span.width.value, first, end]
            values += those
        columns = ", ".join(filter(None, ["-1, 0, '', 0, '', changes", nothing]))
        pieces.append(
            f"SELECT {columns} FROM (SELECT changes FROM"
            f" {_UNCOUNTED} WHERE project_id = %s ORDER BY id LIMIT %s) AS waiting"
        )
        values += [self.project_id, self.most_uncounted + 1]
        return " UNION ALL ".join(pieces), values

    def add_sums(self, found: Stored, long: _LongRows) -> bool:
        """Add what rows of these versions come to; False: one has changed since it was told."""
        sums = {group: VersionedSum(self.place(*group), rows) for group, rows in long.items()}
        missing = {each.pk: each for one in sums.values() for each in one.missing}
        texts = self._texts([*missing])
        for pk, each in missing.items():
            version, row = texts.get(pk, ("", None))
            if row is None or version != each.version:
                return False
        loaded = {pk: row for pk, (_, row) in texts.items()}
        for (key, _), one in sums.items():
            found.figures.setdefault(key, []).extend(one.pieces(loaded, self.load))
        return True

    def _texts(self, pks: list[int]) -> dict[int, tuple[str, Row]]:
        if not pks:
            return {}
        figures = ", ".join(["figures", *self.columns])
        statement = (
            f"SELECT {_VERSIONS}, width, period, {figures} FROM {_ROLLUPS}"
            " WHERE project_id = %s AND id = ANY(%s)"
        )
        return {
            pk: (version, Row(width, period, text, tuple(others)))
            for pk, version, width, period, text, *others in _rows(
                statement, [self.project_id, pks]
            )
        }


def read_keys(
    *, project_id: int, marginal: Marginal, most_uncounted: int
) -> tuple[list[Key], list[Change] | None]:
    """The keys of a marginal, and what waits to be counted; None: more than is read. One
    statement."""
    statement = (
        f"SELECT DISTINCT key, NULL FROM {_ROLLUPS}"
        " WHERE project_id = %s AND marginal = %s AND width = %s"
        " UNION ALL SELECT NULL, changes FROM (SELECT changes FROM"
        f" {_UNCOUNTED} WHERE project_id = %s ORDER BY id LIMIT %s) AS waiting"
    )
    values = [project_id, marginal.value, Width.MONTH.value, project_id, most_uncounted + 1]
    rows = _rows(statement, values)
    keys = [tuple(orjson.loads(key)) for key, _ in rows if key is not None]
    texts = [text for key, text in rows if key is None]
    if len(texts) > most_uncounted:
        return keys, None
    return keys, [change for text in texts for change in load_changes(text)]


@lru_cache(maxsize=8)
def _words_under(heads: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the calls, and the words under some heads, in a row's JSON: a third of the time that it
    takes to read and add up all its words. A word that only looks so within another one is behind
    an escaped quote, never behind what is between words."""
    words = "|".join([CALLS, *(f'{head}:[^"]*' for head in heads)])
    return re.compile(f'[{{,]"({words})":(-?[0-9]+)')


# Words that only rows of before release 2 have among their plain counts.
_WHOLE: Final = tuple(f'"{each.value}:' for each in Distribution)
_OF_SPAN = (
    " WHERE project_id = %s AND marginal = %s AND width = %s AND period >= %s AND period < %s"
)


def read_periods(
    *,
    project_id: int,
    width: Width,
    first: int,
    end: int,
    some: Collection[Marginal] = tuple(Marginal),
) -> dict[Slot, tuple[int, Counts]]:
    """Every row of a width from one period to before another, of some marginals: its id and its
    figures."""
    marginals = ", ".join(f"'{each.value}'" for each in some)
    statement = (
        f"SELECT marginal, width, period, key, id, {_ALL_FIGURES} FROM {_ROLLUPS}"
        " WHERE project_id = %s"
        f" AND marginal IN ({marginals}) AND width = %s AND period >= %s AND period < %s"
    )
    return _by_slot(_rows(statement, [project_id, width.value, first, end]))


def read_slots(project_id: int, slots: Iterable[Slot]) -> dict[Slot, tuple[int, Counts]]:
    """The rows at some places, as far as there are any: their ids and figures."""
    wanted = list(slots)
    if connection.vendor == "postgresql":
        source = (
            "unnest(%s::text[], %s::smallint[], %s::bigint[], %s::text[])"
            " AS p(marginal, width, period, key)"
        )
        values: list[Any] = [list(column) for column in zip(*wanted, strict=True)]
    else:
        source = (
            "(SELECT value ->> 0 AS marginal, value ->> 1 AS width, value ->> 2 AS period,"
            " value ->> 3 AS key FROM json_each(%s)) AS p"
        )
        values = [json.dumps(wanted)]
    # In this order: from each place to its row, by the index.
    statement = (
        f"SELECT r.marginal, r.width, r.period, r.key, r.id, {_ALL_FIGURES} FROM"
        f" {source} CROSS JOIN {_ROLLUPS} r WHERE r.project_id = %s AND r.marginal = p.marginal"
        " AND r.width = p.width AND r.period = p.period AND r.key = p.key"
    )
    return _by_slot(_rows(statement, [*values, project_id])) if wanted else {}


def read_quarter(
    *, project_id: int, quarter: int
) -> tuple[list[CallFacts], list[FitFacts | PlanFacts], list[Change]]:
    """The calls of a quarter-hour, its fits and plans, and what waits of it, as they are at one
    moment."""
    columns = ", ".join(connection.ops.quote_name(name) for name in COLUMNS)
    nothing = ", ".join(["NULL"] * len(COLUMNS))
    # Calls come first: their columns give the types.
    statement = (
        f"SELECT NULL AS changes, started_at, {columns} FROM {_CALLS}"
        " WHERE project_id = %s AND started_at >= %s AND started_at < %s"
        f" UNION ALL SELECT changes, NULL, {nothing} FROM {_UNCOUNTED} WHERE project_id = %s"
        f" UNION ALL SELECT {_FIT[connection.vendor]}, created_at, {nothing} FROM {_FITS}"
        " WHERE project_id = %s AND created_at >= %s AND created_at < %s"
        f" UNION ALL SELECT {_PLAN[connection.vendor]}, started_at, {nothing} FROM {_PLANS}"
        " WHERE project_id = %s AND started_at >= %s AND started_at < %s"
        f" AND outcome <> '{RUNNING}'"
    )
    adapt = connection.ops.adapt_datetimefield_value
    bounds = [adapt(moment_of(quarter)), adapt(moment_of(quarter + 1))]
    calls: list[Sequence[Any]] = []
    others: list[FitFacts | PlanFacts] = []
    waiting: list[Change] = []
    values = [project_id, *bounds, project_id, *[project_id, *bounds] * 2]
    for text, at, *rest in _rows(statement, values):
        if text is None:
            calls.append((moment(at), *rest))
        elif at is None:
            waiting.extend(load_changes(text))
        else:
            others.append(_other(quarter, *orjson.loads(text)))
    waiting = [each for each in waiting if _is_of(each, quarter)]
    return list(facts_of_values(calls)), others, waiting


_FITS, _PLANS = Fit._meta.db_table, PlanRecord._meta.db_table
# A fit as JSON; of its receipt the steps alone.
_FIT: Final = {
    "sqlite": "json_array('fit', model, caller, before_bytes, after_bytes, fits,"
    " json_extract(trim, '$.steps'))",
    "postgresql": "json_build_array('fit', model, caller, before_bytes, after_bytes, fits,"
    " trim -> 'steps')::text",
}
_PLAN_COLUMNS: Final = ", ".join(PlanFacts._fields[1:])
_PLAN: Final = {
    "sqlite": f"json_array('plan', {_PLAN_COLUMNS})",
    "postgresql": f"json_build_array('plan', {_PLAN_COLUMNS})::text",
}


def _other(quarter: int, kind: str, *values: Any) -> FitFacts | PlanFacts:
    """A row that is no call's, from its JSON."""
    if kind == "plan":
        return PlanFacts(quarter, *values)
    model, caller, before, after, fit, steps = values
    return FitFacts(quarter, model, caller, before, after, bool(fit), tuple(steps_of(steps)))


def _is_of(change: Change, quarter: int) -> bool:
    return any(facts is not None and facts.quarter == quarter for facts in change)


def _by_slot(rows: Iterable[Sequence[Any]]) -> dict[Slot, tuple[int, Counts]]:
    return {Slot(*row[:4]): (row[4], _load(row[5], row[6:])) for row in rows}


def _load(figures: str, others: Iterable[str | None]) -> Counts:
    counts: Counts = orjson.loads(figures)
    for text in others:
        if text is not None:
            counts.update(orjson.loads(text))
    return counts


def _rows(statement: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
    with connection_for(Rollup).cursor() as cursor:
        cursor.execute(statement, values)
        found: Sequence[Sequence[Any]] = cursor.fetchall()
        return found


def dump(counts: Mapping[str, int]) -> dict[str, str | None]:
    """Figures as they are stored, by column."""
    plain, found = apart(counts)
    told: dict[str, str | None] = {"figures": orjson.dumps(plain).decode()}
    for each, column in COLUMN_OF.items():
        told[column] = orjson.dumps(found[each]).decode() if each in found else None
    return told
