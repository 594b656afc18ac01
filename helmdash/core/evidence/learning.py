"""What the calls of one model show, out of their rollups (core.rollups.evidence_facts).

Sizes are told in tokens where providers reported them for nearly all calls, clean and failed ones
alike; else in bytes sent. Never the one for some calls and the other for the rest: what fails is
often not counted, and would seem to be of another size by that alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from helmdash.core.budgets.budgets import EffectiveBudget, PromptVariant
from helmdash.core.evidence.estimator import find_ratios
from helmdash.core.evidence.hard_window import find_plateau
from helmdash.core.evidence.output_tokens import find_output_need
from helmdash.core.evidence.planning_outcomes import (
    FIRST_WAY,
    SECOND_WAY,
    find_better_way,
    find_tier,
)
from helmdash.core.evidence.safe_input import SafeInput, find_safe_input
from helmdash.core.evidence.stratified import Cell
from helmdash.core.evidence.suggested import Counted, Learned, PartInput
from helmdash.core.rollups.bands import band_start
from helmdash.core.rollups.buckets import bounds

# Of clean calls and of failed ones: so many have to have told a size to be compared by it.
_LEAST_TOLD: Final = 0.9
# Fewer calls of one purpose, variant or upstream are not looked at by themselves.
_LEAST_OF_PART: Final = 50


class Told(NamedTuple):
    """Figures of like calls in one stretch of time: its number, and whose calls they are."""

    at: int
    upstream: str
    version: str
    purpose: str
    variant: str
    counts: Mapping[str, int]


@dataclass(slots=True)
class _Sums:
    """All counts of some calls, by head and the number behind it; those without one by head.

    cells: those of each kind of size (zt, zb, g).
    """

    plain: Counter[str] = field(default_factory=Counter)
    by_head: dict[str, Counter[int]] = field(default_factory=dict)
    cells: dict[str, list[Cell]] = field(default_factory=dict)

    def of(self, head: str) -> Counter[int]:
        return self.by_head.get(head, Counter())


def learn(
    *,
    model_key: str,
    told: Sequence[Told],
    budget: EffectiveBudget,
    since: datetime | None,
    until: datetime | None,
    with_parts: bool = False,
) -> tuple[Learned, ...]:
    """What the calls of a model show: all of them first, then those of each upstream, where there
    are several. budget: today's, that estimates are held against. with_parts: also of each purpose
    and prompt variant, which takes twice as long.
    """
    of_upstream: dict[str, list[Told]] = {}
    for each in told:
        of_upstream.setdefault(each.upstream, []).append(each)
    sums = {upstream: _sums(some) for upstream, some in of_upstream.items()}
    scopes = [("", told, _added(sums.values()))]
    for upstream in sorted(filter(None, sums)) if len(sums) > 1 else ():
        if sums[upstream].plain["n"] >= _LEAST_OF_PART:
            scopes.append((upstream, of_upstream[upstream], sums[upstream]))
    return tuple(
        _learn(model_key, upstream, some, found, budget, since, until, with_parts=with_parts)
        for upstream, some, found in scopes
    )


def _learn(
    model_key: str,
    upstream: str,
    told: Sequence[Told],
    sums: _Sums,
    budget: EffectiveBudget,
    since: datetime | None,
    until: datetime | None,
    *,
    with_parts: bool,
) -> Learned:
    in_bytes = _is_better_in_bytes(sums)
    head = "zb" if in_bytes else "zt"
    cells = sums.cells.get(head, [])
    safe = find_safe_input(cells, is_part=bool(upstream))
    return Learned(
        model_key=model_key,
        upstream=upstream,
        calls=sums.plain["n"],
        since=since,
        until=until,
        input=safe,
        input_in_bytes=in_bytes,
        above=_above(cells, safe),
        parts=tuple(_parts(cells)) if with_parts else (),
        window=find_plateau(sums.of("w"), longest_whole=_longest_whole(sums)),
        output=find_output_need(
            _values(sums.of("y") + sums.of("yr")), _values(sums.of("yl") + sums.of("ylr"))
        ),
        reasoning_output=find_output_need(_values(sums.of("yr")), _values(sums.of("ylr"))),
        ratios=find_ratios(sums.of("r"), today=budget.chars_per_token),
        catalog=find_safe_input(sums.cells.get("g", [])),
        tier=find_tier(clean=sums.plain["s+"], calls=sums.plain["s"]),
        variant=find_better_way(_ways(told, _by_variant)),
        json_mode=find_better_way(_ways(told, _by_json_mode)),
    )


# Of a word: its head, the number behind it (None: none), and of sizes the word of the clean ones.
_Split = tuple[str, int | None, str]
_SIZED: Final = frozenset({"zt", "zb", "g"})


def _sums(told: Iterable[Told]) -> _Sums:
    """Each word is taken apart once: a year of hours has some hundred different ones, a million
    times."""
    sums = _Sums()
    known: dict[str, _Split] = {}
    for each in told:
        stratum = (each.upstream, each.version, each.purpose, each.variant)
        for word, calls in each.counts.items():
            split = known.get(word)
            if split is None:
                split = known[word] = _split(word)
            head, number, clean = split
            if number is None:
                sums.plain[head] += calls
                continue
            counts = sums.by_head.get(head)
            if counts is None:
                counts = sums.by_head[head] = Counter()
            counts[number] += calls
            if clean and calls > 0:
                good = min(max(each.counts.get(clean, 0), 0), calls)
                cell = Cell(stratum, each.at, number, calls, good)
                sums.cells.setdefault(head, []).append(cell)
    return sums


def _split(word: str) -> _Split:
    head, _, rest = word.partition(":")
    return head, int(rest) if rest else None, f"{head}+:{rest}" if head in _SIZED else ""


def _added(sums: Iterable[_Sums]) -> _Sums:
    found = _Sums()
    for each in sums:
        found.plain.update(each.plain)
        for head, counts in each.by_head.items():
            found.by_head.setdefault(head, Counter()).update(counts)
        for head, cells in each.cells.items():
            found.cells.setdefault(head, []).extend(cells)
    return found


def _is_better_in_bytes(sums: _Sums) -> bool:
    clean = sums.plain["j+"]
    failed = sums.plain["j"] - clean

    def least_told(head: str) -> float:
        good = sums.of(f"{head}+").total()
        bad = sums.of(head).total() - good
        return min(good / clean if clean else 1.0, bad / failed if failed else 1.0)

    in_tokens = least_told("zt")
    return in_tokens < _LEAST_TOLD and least_told("zb") > in_tokens


def _parts(cells: Sequence[Cell]) -> Iterator[PartInput]:
    """The safe input of each purpose, and of each variant, where there are several."""
    # Where they stand in a stratum.
    for place, kind in ((2, "purpose"), (3, "prompt_variant")):
        of_part: dict[str, list[Cell]] = {}
        for cell in cells:
            of_part.setdefault(cell.stratum[place], []).append(cell)
        for name in sorted(of_part) if len(of_part) > 1 else ():
            if sum(cell.calls for cell in of_part[name]) >= _LEAST_OF_PART:
                yield PartInput(
                    kind=kind, name=name, input=find_safe_input(of_part[name], is_part=True)
                )


def _above(cells: Iterable[Cell], safe: SafeInput) -> Counted | None:
    """Those of the calls that the ceiling was found by which are above it."""
    if safe.band is None:
        return None
    since = -math.inf if safe.first_at is None else safe.first_at
    found = [each for each in cells if each.band > safe.band and each.at >= since]
    return Counted(calls=sum(each.calls for each in found), clean=sum(each.clean for each in found))


def _longest_whole(sums: _Sums) -> int | None:
    """The least that the longest prompt was that was answered whole."""
    bands = [band for band, calls in sums.of("zt+").items() if calls > 0]
    return band_start(max(bands)) if bands else None


def _values(counts: Mapping[int, int]) -> dict[int, int]:
    """Counts by the middle of their bucket."""
    return {sum(bounds(bucket)) // 2: calls for bucket, calls in counts.items() if calls > 0}


_Way = Callable[[Told], Iterator[tuple[int, int, int]]]


def _ways(told: Iterable[Told], way_of: _Way) -> Iterator[Cell]:
    for each in told:
        if each.counts.get("s"):
            by_variant = "" if way_of is _by_variant else each.variant
            stratum = (each.upstream, each.version, each.purpose, by_variant)
            for way, calls, clean in way_of(each):
                if calls > 0:
                    yield Cell(stratum, each.at, way, calls, min(max(clean, 0), calls))


def _by_variant(each: Told) -> Iterator[tuple[int, int, int]]:
    calls, clean = each.counts.get("s", 0), each.counts.get("s+", 0)
    if each.variant == PromptVariant.FULL_STEPS:
        yield FIRST_WAY, calls, clean
    elif each.variant == PromptVariant.SINGLE_PICK:
        yield SECOND_WAY, calls, clean


def _by_json_mode(each: Told) -> Iterator[tuple[int, int, int]]:
    asked, clean = each.counts.get("sj", 0), each.counts.get("sj+", 0)
    yield FIRST_WAY, each.counts.get("s", 0) - asked, each.counts.get("s+", 0) - clean
    yield SECOND_WAY, asked, clean
