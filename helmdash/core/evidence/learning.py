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
from functools import partial
from typing import Final, NamedTuple

from helmdash.core.budgets.budgets import EffectiveBudget, PromptVariant
from helmdash.core.evidence.estimator import ESTIMATOR_VERSION, find_ratios
from helmdash.core.evidence.hard_window import HARD_WINDOW_VERSION, find_plateau
from helmdash.core.evidence.output_tokens import OUTPUT_VERSION, find_output_need
from helmdash.core.evidence.planning_outcomes import (
    FIRST_WAY,
    PLANNING_VERSION,
    SECOND_WAY,
    find_better_way,
    find_tier,
)
from helmdash.core.evidence.safe_input import SAFE_INPUT_VERSION, SafeInput, find_safe_input
from helmdash.core.evidence.sized_cells import SizedCells, joined
from helmdash.core.evidence.stratified import Cell, Stratum
from helmdash.core.evidence.suggested import Counted, Learned, PartInput
from helmdash.core.rollups.bands import band_of_slice, band_start, middle_slice
from helmdash.core.rollups.buckets import bounds
from helmdash.core.rollups.figures import add

# All that `learn` goes by: another version may find something else in the same calls.
METHODS: Final = (
    SAFE_INPUT_VERSION,
    HARD_WINDOW_VERSION,
    OUTPUT_VERSION,
    ESTIMATOR_VERSION,
    PLANNING_VERSION,
)
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

    words: those that tell sizes, as `told` has them, each with its head, its slice and the word of
    the clean ones. parts: what these are the sums of, where they are not of `told` itself. made,
    made_slices: cells by head, as far as they were asked for.
    """

    told: Sequence[Told] = ()
    parts: Sequence[_Sums] = ()
    plain: Counter[str] = field(default_factory=Counter)
    by_head: dict[str, Counter[int]] = field(default_factory=dict)
    words: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    made: dict[str, SizedCells] = field(default_factory=dict)
    made_slices: dict[str, list[Cell]] = field(default_factory=dict)

    def of(self, head: str) -> Counter[int]:
        return self.by_head.get(head, Counter())

    def cells(self, head: str) -> SizedCells:
        """Those of one kind of size (xt, xb, xg). Made once: a million calls have some hundred
        thousand."""
        if self.parts:
            return joined([part.cells(head) for part in self.parts])
        if head not in self.made:
            self.made[head] = SizedCells(list(self._by_band(head)), partial(self._slices, head))
        return self.made[head]

    def _slices(self, head: str) -> list[Cell]:
        if head not in self.made_slices:
            self.made_slices[head] = list(self._by_slice(head))
        return self.made_slices[head]

    def _by_band(self, head: str) -> Iterator[Cell]:
        for stratum, at, counted in self._counted(head):
            bands: dict[int, tuple[int, int]] = {}
            for number, calls, clean in counted:
                band = band_of_slice(number)
                before = bands.get(band)
                added = (calls, clean) if before is None else (before[0] + calls, before[1] + clean)
                bands[band] = added
            for band, (calls, clean) in bands.items():
                yield Cell(stratum, at, band, calls, clean)

    def _by_slice(self, head: str) -> Iterator[Cell]:
        for stratum, at, counted in self._counted(head):
            for number, calls, clean in counted:
                yield Cell(stratum, at, number, calls, clean)

    def _counted(self, head: str) -> Iterator[tuple[Stratum, int, list[tuple[int, int, int]]]]:
        """Of each stratum and stretch of time: slices, the calls in each, and the clean ones."""
        words = {word: told[1:] for word, told in self.words.items() if told[0] == head}
        for each in self.told if words else ():
            counts = each.counts
            counted = []
            for word in words.keys() & counts.keys():
                calls = counts[word]
                if calls > 0:
                    number, clean = words[word]
                    counted.append((number, calls, min(max(counts.get(clean, 0), 0), calls)))
            yield (each.upstream, each.version, each.purpose, each.variant), each.at, counted


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
    scopes = [("", told, _added(tuple(sums.values())))]
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
    head = "xb" if in_bytes else "xt"
    cells = sums.cells(head)
    safe = find_safe_input(cells, is_part=bool(upstream))
    return Learned(
        model_key=model_key,
        upstream=upstream,
        calls=sums.plain["n"],
        since=since,
        until=until,
        input=safe,
        input_in_bytes=in_bytes,
        above=_above(cells.by_band, safe),
        parts=tuple(_parts(cells)) if with_parts else (),
        window=find_plateau(sums.of("w"), longest_whole=_longest_whole(sums)),
        output=find_output_need(
            _values(sums.of("y") + sums.of("yr")), _values(sums.of("yl") + sums.of("ylr"))
        ),
        reasoning_output=find_output_need(_values(sums.of("yr")), _values(sums.of("ylr"))),
        ratios=find_ratios(sums.of("r"), today=budget.chars_per_token),
        catalog=find_safe_input(sums.cells("xg")),
        tier=find_tier(clean=sums.plain["s+"], calls=sums.plain["s"]),
        variant=find_better_way(_ways(told, _by_variant)),
        json_mode=find_better_way(_ways(told, _by_json_mode)),
    )


# Of a word: its head, the number behind it (None: none), and of sizes the word of the clean ones.
_Split = tuple[str, int | None, str]
_SIZED: Final = frozenset({"xt", "xb", "xg"})
# As they were counted by bands, and are still in rollups from before there were slices.
_BY_BANDS: Final = {"zt": "xt", "zb": "xb", "g": "xg"}


def _sums(told: Sequence[Told]) -> _Sums:
    """Each word is taken apart once: a year of hours has some hundred different ones, a million
    times."""
    totals: dict[str, int] = {}
    for each in told:
        add(totals, each.counts)
    sums = _Sums(told)
    for word, calls in totals.items():
        head, number, clean = _split(word)
        if number is None:
            sums.plain[head] += calls
            continue
        sums.by_head.setdefault(head, Counter())[number] += calls
        if clean:
            sums.words[word] = (head, number, clean)
    return sums


def _split(word: str) -> _Split:
    head, _, rest = word.partition(":")
    number = int(rest) if rest else None
    clean = f"{head}+:{rest}"
    plain = head.removesuffix("+")
    if plain in _BY_BANDS and number is not None:
        head, number = head.replace(plain, _BY_BANDS[plain]), middle_slice(number)
    return head, number, clean if head in _SIZED else ""


def _added(parts: Sequence[_Sums]) -> _Sums:
    found = _Sums(parts=parts)
    for each in parts:
        found.plain.update(each.plain)
        for head, counts in each.by_head.items():
            found.by_head.setdefault(head, Counter()).update(counts)
    return found


def _is_better_in_bytes(sums: _Sums) -> bool:
    clean = sums.plain["j+"]
    failed = sums.plain["j"] - clean

    def least_told(head: str) -> float:
        good = sums.of(f"{head}+").total()
        bad = sums.of(head).total() - good
        return min(good / clean if clean else 1.0, bad / failed if failed else 1.0)

    in_tokens = least_told("xt")
    return in_tokens < _LEAST_TOLD and least_told("xb") > in_tokens


def _parts(cells: SizedCells) -> Iterator[PartInput]:
    """The safe input of each purpose, and of each variant, where there are several."""
    # Where they stand in a stratum.
    for place, kind in ((2, "purpose"), (3, "prompt_variant")):
        of_part = cells.split(place)
        for name in sorted(of_part) if len(of_part) > 1 else ():
            part = of_part[name]
            if sum(cell.calls for cell in part.by_band) >= _LEAST_OF_PART:
                yield PartInput(kind=kind, name=name, input=find_safe_input(part, is_part=True))


def _above(cells: Iterable[Cell], safe: SafeInput) -> Counted | None:
    """Those of the calls that the ceiling was found by which are above it."""
    if safe.band is None:
        return None
    since = -math.inf if safe.first_at is None else safe.first_at
    found = [each for each in cells if each.band > safe.band and each.at >= since]
    return Counted(calls=sum(each.calls for each in found), clean=sum(each.clean for each in found))


def _longest_whole(sums: _Sums) -> int | None:
    """The least that the longest prompt was that was answered whole."""
    found = [number for number, calls in sums.of("xt+").items() if calls > 0]
    return band_start(band_of_slice(max(found))) if found else None


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
