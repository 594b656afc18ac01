"""Figures of many calls, fits or plans as counts under short words, to be added and taken away.

So the figures of a day are those of its hours added up, a call that turns out to have been another
is the new one added and the old one taken away, and a call that is erased leaves nothing. A count
that comes to nothing is not kept.

    n               calls                   o:<outcome>    by outcome
    f:<reason>      by finish reason        l:<level>      by level
    c:<cause>       by failure cause        s:<spelling>   by the model's name as it was spelt
    b:<band>        by prompt size          ok:<band>      of these, the clean ones
    cut             suspected silent cuts   pt, pt# ...    sums of tokens, and how many told them
    P: F: L: T: E:<bucket>  distributions
    hit#, hit, hit/         calls that told of their cache, what it gave, their prompt tokens

Those of fits are in core.rollups.fit_facts, of plans in core.rollups.plan_facts, those for learning
in core.rollups.evidence_facts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from itertools import repeat
from operator import add as plus
from typing import Any, Final, TypeVar

from helmdash.core.budgets.health import HealthReason
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.outcomes import CallOutcome, outcome_of
from helmdash.core.rollups.buckets import bucket_of
from helmdash.core.rollups.evidence_facts import evidence_words, key_of_evidence
from helmdash.core.rollups.facts import (
    CallFacts,
    band_of,
    grouped_purpose,
    grouped_variant,
    key_of,
)
from helmdash.core.rollups.fit_facts import FitFacts, figures_of
from helmdash.core.rollups.plan_facts import PlanFacts, figures_of_plan, key_of_plan

Counts = dict[str, int]
"""Figures: a count for each word."""
Key = tuple[str, ...]
Facts = CallFacts | FitFacts | PlanFacts
Change = tuple[Facts | None, Facts | None]
"""Facts before and after: None before a call (fit, plan) was recorded, None after it was erased."""

CALLS: Final = "n"
CUTS: Final = "cut"
_SUSPECTED_CUT: Final = HealthReason.SUSPECTED_CUT.value
# Shares are whole numbers of this part of one.
SHARE_UNIT: Final = 1_000_000


class Marginal(StrEnum):
    """What figures are kept by. Rows of a model are told apart by purpose and variant as well.

    Three are of fits: all, by model as it is spelt, by caller. Those of EVIDENCE have words of
    their own, for what is learned from calls. Two are of plans that are over: all, and by
    model as it is spelt with kind and variant. SPENDING: by client ("" where none was named) and
    model, since a client's tokens have a price only by their models.
    """

    ALL = "all"
    MODEL = "model"
    UPSTREAM = "upstream"
    CLIENT = "client"
    PURPOSE = "purpose"
    VARIANT = "variant"
    LEVEL = "level"
    CAUSE = "cause"
    FINISH_REASON = "finish"
    SIZE = "size"
    LANE = "lane"
    FIT = "fit"
    FIT_MODEL = "fit_model"
    FIT_CALLER = "fit_caller"
    EVIDENCE = "evidence"
    PLAN = "plan"
    PLAN_MODEL = "plan_model"
    SPENDING = "spending"


OF_FITS: Final = frozenset({Marginal.FIT, Marginal.FIT_MODEL, Marginal.FIT_CALLER})
OF_PLANS: Final = frozenset({Marginal.PLAN, Marginal.PLAN_MODEL})
# Which marginals are counted. 1: those of release 1; 2: lanes and fits as well; 3: evidence; 4 and
# 5: plans, by other keys in 4; 6: spending.
VERSION: Final = 6
_OF_VERSION: Final = {
    2: frozenset({Marginal.LANE, *OF_FITS}),
    3: frozenset({Marginal.EVIDENCE}),
    5: OF_PLANS,
    6: frozenset({Marginal.SPENDING}),
}
ADDED: Final = frozenset(each for some in _OF_VERSION.values() for each in some)


def added_after(version: int) -> frozenset[Marginal]:
    """The marginals that rollups of a version do not have."""
    return frozenset(each for each in Marginal if version_with(each) > version)


def wholes_of(some: Collection[Marginal]) -> frozenset[Marginal]:
    """Of what some marginals are about (calls, fits, plans), the marginals of everything: a period
    without a row of one of these has no row of the others."""
    return frozenset(
        Marginal.FIT if each in OF_FITS else Marginal.PLAN if each in OF_PLANS else Marginal.ALL
        for each in some
    )


def version_with(marginal: Marginal) -> int:
    """The version of the rollups that a marginal came with."""
    return next((number for number, some in _OF_VERSION.items() if marginal in some), 1)


class Distribution(StrEnum):
    """What is counted by buckets (core.rollups.buckets). Shares are in SHARE_UNIT."""

    PROMPT_TOKENS = "P"
    FULLNESS = "F"
    LATENCY_MS = "L"
    TTFT_MS = "T"
    ESTIMATE_RATIO = "E"


# Distributions are most of a row's bytes: the marginals that tell how fast and how full have them.
_DISTRIBUTED: Final = frozenset({Marginal.ALL, Marginal.MODEL, Marginal.UPSTREAM, Marginal.CLIENT})
# Looked up, for a call of the enumeration costs ten times as much.
_OF_HEAD: Final = {f"{each.value}:": each for each in Distribution}
_HEADS: Final = frozenset(_OF_HEAD)
_SPENT: Final = frozenset({"o:", "s:"})
_BUCKETED: Final = frozenset(each.value for each in Distribution)


class Tokens(StrEnum):
    """What is summed up; `#` behind it counts the calls that told it."""

    PROMPT = "pt"
    COMPLETION = "ct"
    CACHED = "kt"
    CACHE_WRITE = "wt"
    REASONING = "rt"


Place = tuple[int, Marginal, Key]
"""A quarter-hour, and whose figures these are in it."""


def tally(changes: Iterable[Change], *, only: Marginal | None = None) -> dict[Place, Counts]:
    """What changes of calls come to, for every marginal (or `only` one) of each quarter-hour.

    Calls that differ in numbers only are counted together first: then a call costs its numbers.
    """
    cells: _Cells = {}
    places: dict[Place, Counts] = {}
    for change in changes:
        for facts, sign in zip(change, (-1, 1), strict=True):
            if isinstance(facts, CallFacts):
                _count(cells, facts, sign)
                if only is None or only is Marginal.EVIDENCE:
                    _add_evidence(places, facts, sign)
            elif isinstance(facts, PlanFacts):
                if only is None or only in OF_PLANS:
                    _add_plan(places, facts, sign, only)
            elif facts is not None and (only is None or only in OF_FITS):
                _add_fit(places, facts, sign, only)
    for facts, counts in cells.values():
        _count_words(counts, facts)
        plain = {word: n for word, n in counts.items() if word[:2] not in _HEADS}
        for marginal, key in _keys(facts):
            if only is None or marginal is only:
                told = counts if marginal in _DISTRIBUTED else plain
                add(places.setdefault((facts.quarter, marginal, key), {}), told)
        if only is None or only is Marginal.SPENDING:
            place = (facts.quarter, Marginal.SPENDING, (facts.client_name or "", key_of(facts)))
            add(places.setdefault(place, {}), _spent(plain))
    return {place: counts for place, counts in places.items() if counts}


def new_keys(changes: Iterable[Change], only: Marginal) -> set[Key]:
    """The keys of a marginal of calls under which changes of calls put some: without a sum, for who
    wants no figure."""
    return {
        key
        for _, after in changes
        if isinstance(after, CallFacts)
        for marginal, key in _keys(after)
        if marginal is only
    }


def _spent(counts: Counts) -> Counts:
    """What tells who used how much, and how it ended: calls, sums, outcomes, spellings."""
    return {word: n for word, n in counts.items() if ":" not in word or word[:2] in _SPENT}


def _add_evidence(places: dict[Place, Counts], facts: CallFacts, sign: int) -> None:
    place = (facts.quarter, Marginal.EVIDENCE, key_of_evidence(facts))
    counts = places.get(place)
    if counts is None:
        counts = places[place] = {}
    for word in evidence_words(facts):
        counts[word] = counts.get(word, 0) + sign
        if not counts[word]:
            del counts[word]


def _add_fit(
    places: dict[Place, Counts], facts: FitFacts, sign: int, only: Marginal | None
) -> None:
    counts = {word: count * sign for word, count in figures_of(facts).items()}
    for marginal, key in (
        (Marginal.FIT, ()),
        (Marginal.FIT_MODEL, (facts.model,)),
        (Marginal.FIT_CALLER, (facts.caller,)),
    ):
        if only is None or marginal is only:
            add(places.setdefault((facts.quarter, marginal, key), {}), counts)


def _add_plan(
    places: dict[Place, Counts], facts: PlanFacts, sign: int, only: Marginal | None
) -> None:
    counts = {word: count * sign for word, count in figures_of_plan(facts).items()}
    plain = {word: count for word, count in counts.items() if word[:2] not in _HEADS}
    for marginal, key, told in (
        (Marginal.PLAN, (), plain),
        (Marginal.PLAN_MODEL, key_of_plan(facts), counts),
    ):
        if only is None or marginal is only:
            add(places.setdefault((facts.quarter, marginal, key), {}), told)


def add_places(into: dict[Key, Counts], places: Mapping[Place, Counts]) -> None:
    """Add figures by key, whichever quarter-hour they are of."""
    for (_, _, key), counts in places.items():
        add(into.setdefault(key, {}), counts)


Word = TypeVar("Word")


def add(into: dict[Word, int], counts: Mapping[Word, int]) -> None:
    """Add counts; what comes to nothing goes."""
    # No loop of ours: a year of models has some hundred thousand words, at a third of the time.
    so_far = map(into.get, counts, repeat(0))
    into.update(zip(counts, map(plus, so_far, counts.values()), strict=True))
    # Asked once for all words: where a range is added up nothing is taken away.
    if not all(map(into.__getitem__, counts)):
        for word in [word for word in counts if not into[word]]:
            del into[word]


# Counts by the head of their words, then by the rest: a text, or the number of a bucket.
Heads = dict[str, dict[Any, int]]


def heads(counts: Mapping[str, int]) -> Heads:
    """All counts by their heads: for who wants many of them. Those whose word is the head alone
    have an empty rest."""
    found: Heads = {}
    for word, count in counts.items():
        head, _, rest = word.partition(":")
        try:
            found[head][rest] = count
        except KeyError:
            found[head] = {rest: count}
    for head in _BUCKETED & found.keys():
        found[head] = {int(rest): count for rest, count in found[head].items()}
    return found


class Sum(dict[str, int]):
    """Counts that are changed no more, and taken apart once for all who ask."""

    @cached_property
    def by_head(self) -> Heads:
        """As `heads` has them. Not to be changed."""
        return heads(self)


def heads_of_all(some: Iterable[Mapping[str, int]]) -> Heads:
    """The heads of all these counts together."""
    found: Heads = {}
    for counts in some:
        kept = counts.by_head if isinstance(counts, Sum) else None
        for head, rests in (heads(counts) if kept is None else kept).items():
            if kept is not None and head not in found:
                found[head] = dict(rests)
            else:
                add(found.setdefault(head, {}), rests)
    return {head: rests for head, rests in found.items() if rests}


def with_only(counts: Mapping[str, int], wanted: Collection[Distribution]) -> Counts:
    """The counts without all distributions but these."""
    # Only their words begin with a capital, and the first letter is the cheapest thing to look at.
    left = frozenset(each.value for each in Distribution if each not in wanted)
    return {word: count for word, count in counts.items() if word[0] not in left}


def apart(counts: Mapping[str, int]) -> tuple[Counts, dict[Distribution, Counts]]:
    """The counts without any distribution, and each of these, as far as there is one."""
    plain: Counts = {}
    found: dict[Distribution, Counts] = {}
    for word, count in counts.items():
        what = _OF_HEAD.get(word[:2])
        if what is None:
            plain[word] = count
            continue
        try:
            found[what][word] = count
        except KeyError:
            found[what] = {word: count}
    return plain, found


def under(counts: Mapping[str, int], head: str) -> dict[str, int]:
    """Those counts whose word begins with `head:`, by the rest of it."""
    start = f"{head}:"
    rest = len(start)
    return {word[rest:]: count for word, count in counts.items() if word.startswith(start)}


def distribution(counts: Mapping[str, int], what: Distribution) -> dict[int, int]:
    """How many calls lie in each bucket."""
    return {int(bucket): count for bucket, count in under(counts, what).items()}


_Cells = dict[tuple[object, ...], tuple[CallFacts, Counts]]
# The time and the words of a call, but for its lane, which come before its numbers.
_WORDS: Final = CallFacts._fields.index("sent_bytes")


def key_of_model(facts: CallFacts) -> Key:
    """The key of a call's figures among those of models."""
    return key_of(facts), grouped_purpose(facts), grouped_variant(facts)


def estimate_ratio(facts: CallFacts) -> float | None:
    """Our estimate of the prompt by what the provider counted; None where either is not known."""
    if facts.estimate_tokens is None or not facts.prompt_tokens or not _is_trusted(facts):
        return None
    return facts.estimate_tokens / facts.prompt_tokens


def fullness(facts: CallFacts) -> int | None:
    """Which part of its limit a prompt took, in SHARE_UNIT; None where the limit is not known, or
    the count of the prompt is not, or is not trusted."""
    if not facts.prompt_tokens or not facts.limit_tokens or not _is_trusted(facts):
        return None
    return facts.prompt_tokens * SHARE_UNIT // facts.limit_tokens


def _count(cells: _Cells, facts: CallFacts, sign: int) -> None:
    """Add the numbers of a call to those of its like."""
    like = (*facts[:_WORDS], band_of(facts.sent_bytes), facts.lane)
    cell = cells.get(like)
    if cell is None:
        cell = cells[like] = (facts, {})
    counts = cell[1]
    counts[CALLS] = counts.get(CALLS, 0) + sign
    for word, amount in _numbers(facts):
        counts[word] = counts.get(word, 0) + amount * sign


def _numbers(facts: CallFacts) -> list[tuple[str, int]]:
    """What only this call has. A list, and not one thing after the other: asked of every call."""
    prompt, completion = facts.prompt_tokens, facts.completion_tokens
    found: list[tuple[str, int]] = []
    if prompt is not None:
        found += (("pt", prompt), ("pt#", 1), (f"P:{bucket_of(prompt)}", 1))
    if completion is not None:
        found += (("ct", completion), ("ct#", 1))
    if facts.latency_ms is not None:
        found.append((f"L:{bucket_of(facts.latency_ms)}", 1))
    if facts.ttft_ms is not None:
        found.append((f"T:{bucket_of(facts.ttft_ms)}", 1))
    is_told = prompt is not None
    for word, tokens, is_part in (
        # In sums, a part of a prompt that nobody counted would be taken from those of other calls.
        (Tokens.CACHED.value, facts.cached_tokens, is_told),
        (Tokens.CACHE_WRITE.value, facts.cache_write_tokens, is_told),
        (Tokens.REASONING.value, facts.reasoning_tokens, True),
    ):
        if tokens is not None and is_part:
            found += ((word, tokens), (f"{word}#", 1))
    if prompt and _is_trusted(facts):
        found += _of_trusted(facts, prompt)
    return found


def _is_trusted(facts: CallFacts) -> bool:
    """Whether the provider's count of the prompt is taken, which is not where it was cut."""
    return facts.level_reason != _SUSPECTED_CUT


def _of_trusted(facts: CallFacts, prompt: int) -> Iterator[tuple[str, int]]:
    share = fullness(facts)
    if share is not None:
        yield f"F:{bucket_of(share)}", 1
    if facts.estimate_tokens is not None:
        yield f"E:{bucket_of(facts.estimate_tokens * SHARE_UNIT // prompt)}", 1
    if facts.cached_tokens is not None:
        yield "hit#", 1
        yield "hit", facts.cached_tokens
        yield "hit/", prompt


def _count_words(counts: Counts, facts: CallFacts) -> None:
    """The words that all calls of a cell share, as often as it has calls."""
    calls = counts.get(CALLS, 0)
    outcome = outcome_of(cause=facts.cause, status=facts.status)
    words = [
        f"o:{outcome.value}",
        f"f:{facts.finish_reason}",
        f"l:{facts.level}",
        f"s:{facts.model}",
    ]
    if facts.cause:
        words.append(f"c:{facts.cause}")
    if facts.level_reason == HealthReason.SUSPECTED_CUT:
        words.append(CUTS)
    band = band_of(facts.sent_bytes)
    if band is not None:
        words.append(f"b:{band}")
        if outcome is CallOutcome.CLEAN:
            words.append(f"ok:{band}")
    for word in words:
        counts[word] = calls


def _keys(facts: CallFacts) -> Iterator[tuple[Marginal, Key]]:
    """Where the figures of a call belong; nowhere where it did not say."""
    yield Marginal.ALL, ()
    yield Marginal.MODEL, key_of_model(facts)
    for marginal, word in (
        (Marginal.UPSTREAM, facts.provider),
        (Marginal.CLIENT, facts.client_name),
        (Marginal.PURPOSE, facts.purpose),
        (Marginal.VARIANT, facts.prompt_variant),
        (Marginal.LEVEL, facts.level),
        (Marginal.CAUSE, facts.cause),
        (Marginal.FINISH_REASON, facts.finish_reason),
        (Marginal.SIZE, band_of(facts.sent_bytes)),
        # Calls of before there were lanes have none, and were main calls.
        (Marginal.LANE, facts.lane or Lane.MAIN.value),
    ):
        if word:
            yield marginal, (word,)
