"""The history half of the ranking: which tools were picked for intents like this one.

Four signs, added up (spec: history is a prior, not a ranker):
- a vote of each past plan for its tools, as strong as its intent is near: mostly that of its
  nearest clause to one of ours, partly that of the whole intents;
- the words of all the intents a tool was picked for, as if they were a description of it;
- company: what was picked together with a tool that suits this intent;
- habit: what is picked often, whatever is asked.

All are trusted as far as the past repeats itself: where the same tool is hardly ever picked
twice, the tools of yesterday say little about those of today. So a history cannot hurt much.
Past intents may hold pasted text too; of those that ask for something only the asking is heard.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from helmdash.core.ranking.history_index import (
    SATURATION,
    HashWord,
    IndexedPlan,
    Past,
    Postings,
    Query,
    hashed,
    queries_of,
    read_past,
    words_of_intent,
)
from helmdash.core.text.words import Clause


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPlan:
    """An earlier intent and the ids of the tools that were picked for it.

    age_days: how long ago; None does not decay. weight: 0 to 1, what the plan is worth as
    evidence; a plan known to have been followed counts 1, one nobody confirmed less, 0 is as if
    it were not there. sketch: the intent as `sketch_of` gave it, for projects that keep no text
    (`intent` is "" then).
    """

    intent: str
    tools: tuple[str, ...]
    age_days: float | None = None
    weight: float = 1.0
    sketch: tuple[Query, ...] | None = None


# A plan of a quarter ago counts half: catalogs and habits change from release to release, but
# work that comes back only monthly or quarterly should still be remembered.
HALF_LIFE_DAYS: Final = 90.0
# Ages count in steps of this many half-lives, so that a history is not indexed anew all the
# time just because the clock moved on.
_AGE_STEP: Final = 0.25

# Measured together with the rest of RANKING_VERSION.
_VOTE: Final = 0.80  # what a certain vote adds to a lexical score of at most about 1
_WORDS: Final = 0.50  # what a perfect match with a tool's past words adds
_COMPANY: Final = 0.30  # what a tool earns that always comes along with a perfect one
_HABIT: Final = 0.20  # and one that is always picked
_VOTE_TRUST: Final = 0.9  # no single past plan is certain
_WHOLE: Final = 0.3  # how much of a nearness is that of the whole intents
_FARTHEST: Final = 0.05  # plans less near than this do not vote
_FEWEST_WORDS: Final = 3.0  # a match of less rarity than this is never perfect
_GOOD_COMPANY: Final = 0.1  # tools that score less than this bring nobody along
_BEST_COMPANY: Final = 1.5  # and more than this brings no more
_DIGITS: Final = 6  # nearer to each other than this is equally near
_MOST_PLANS: Final = 2_000  # the newest; more would not fit into a fit's time


def past_scores(
    history: Sequence[PastPlan],
    clauses: Sequence[Clause],
    hash_word: HashWord | None = None,
    likeness: Callable[[str], float] | None = None,
) -> dict[str, float]:
    """What the past adds to the score of each tool that it knows. Plans come oldest first.

    hash_word: passes every word through the function that made the sketches in this history; None:
    it has no sketches. likeness: the lexical score of a tool, 0 for one that is not in the catalog;
    None: all count alike.
    """
    queries: Sequence[Query] = queries_of(clauses) if history else ()
    if not queries:
        return {}
    past, hash_word = _read(tuple(history[-_MOST_PLANS:]), hash_word)
    queries = hashed(queries, hash_word)
    votes, words = _votes(past, queries), _likeness_to_words(past, queries)
    scores = [
        trust * (_VOTE * vote + _WORDS * word) + _HABIT * past.trust * habit
        for trust, vote, word, habit in zip(
            past.trust_of_tool, votes, words, past.habit, strict=True
        )
    ]
    company = _company(past, scores, likeness)
    return {
        tool: score + _COMPANY * past.trust * beside
        for tool, score, beside in zip(past.tools, scores, company, strict=True)
    }


def sketch_of(intent: str, hash_word: HashWord) -> tuple[Query, ...]:
    """The words of an intent's clauses, each made unreadable by `hash_word` (a keyed hash).

    Enough to tell how near later intents are, to whoever has the key, and nobody else.
    """
    return tuple(hashed(words_of_intent(intent), hash_word))


def similar(
    history: Sequence[PastPlan], intent: str, hash_word: HashWord | None = None, limit: int = 5
) -> tuple[tuple[int, float], ...]:
    """Positions in `history` of the plans with the nearest intents, and how near: up to 1.

    Nearest first, the newer one first where two are as near. Age and weight play no part. hash_word
    None: the history holds no sketches.
    """
    return _nearest(history, words_of_intent(intent), hash_word, limit)


def similar_to_sketch(
    history: Sequence[PastPlan], sketch: Sequence[Query], limit: int = 5
) -> tuple[tuple[int, float], ...]:
    """The same for an intent that is known by its sketch; every plan has one too, and no text."""
    return _nearest(history, sketch, None, limit)


def _nearest(
    history: Sequence[PastPlan], queries: Sequence[Query], hash_word: HashWord | None, limit: int
) -> tuple[tuple[int, float], ...]:
    if not history or not queries:
        return ()
    first = max(0, len(history) - _MOST_PLANS)
    past, hash_word = _read(tuple(replace(plan, weight=1.0) for plan in history[first:]), hash_word)
    found = enumerate(_nearness(past, hashed(queries, hash_word)), start=first)
    near = [(at, min(round(value, _DIGITS), 1.0)) for at, value in found]
    near.sort(key=lambda pair: (-pair[1], -pair[0]))
    return tuple(pair for pair in near[:limit] if pair[1] > 0)


@lru_cache(maxsize=16)
def _read(
    history: tuple[PastPlan, ...], hash_word: HashWord | None
) -> tuple[Past, HashWord | None]:
    """The index of a history, and how to hash the words of an intent, if it has to be done."""
    plans = tuple(_plan(plan) for plan in history if plan.weight > 0)
    # Hiding changes no score, and costs a hash a word: only where sketches have to be met.
    hash_word = hash_word if any(plan.sketch for plan in plans) else None
    return read_past(plans, hash_word), hash_word


def _plan(plan: PastPlan) -> IndexedPlan:
    worth = min(plan.weight, 1.0)
    if plan.age_days is not None and plan.age_days > 0:
        steps = math.floor(plan.age_days / (HALF_LIFE_DAYS * _AGE_STEP))
        worth *= 0.5 ** min(steps * _AGE_STEP, 1_000.0)
    return IndexedPlan(plan.intent, None if plan.intent else plan.sketch, plan.tools, worth)


def _votes(past: Past, queries: Sequence[Query]) -> list[float]:
    """Noisy-or over the plans a tool was picked in: certain plans decide, doubtful ones add up."""
    doubt = [1.0] * len(past.tools)
    for plan, nearness in enumerate(_nearness(past, queries)):
        if nearness > _FARTHEST:
            tools = past.tools_of_plan[plan]
            # Of several tools each was picked for a part of the intent, and not for all of it.
            share = past.plans[plan].worth / math.sqrt(len(tools) or 1)
            for tool in tools:
                doubt[tool] *= 1 - _VOTE_TRUST * nearness * share
    return [1 - left for left in doubt]


def _nearness(past: Past, queries: Sequence[Query]) -> list[float]:
    """For each past plan the cosine between its nearest clause and ours, and of the wholes."""
    whole = [0.0] * len(past.plans)
    _raise_to_cosines(whole, past, queries[-1], past.wholes)
    clauses = [0.0] * len(past.plan_of_clause)
    for query in queries[:-1] or queries:
        _raise_to_cosines(clauses, past, query, past.clauses)
    nearest = whole.copy()
    for plan, near in zip(past.plan_of_clause, clauses, strict=True):
        if near > nearest[plan]:
            nearest[plan] = near
    return [(1 - _WHOLE) * n + _WHOLE * w for n, w in zip(nearest, whole, strict=True)]


def _raise_to_cosines(best: list[float], past: Past, query: Query, postings: Postings) -> None:
    near: dict[int, float] = defaultdict(float)
    norm = 0.0
    for stem in query:
        rarity = past.rarity.get(stem)
        if rarity is None:
            # Words the past never saw make the intent less like any of it.
            norm += (past.unknown_rarity(stem) / 2) ** 2
            continue
        norm += rarity * rarity
        for at, weight in postings.get(stem, ()):
            near[at] += weight
    scale = 1 / math.sqrt(norm)
    for at, product in near.items():
        if product * scale > best[at]:
            best[at] = product * scale


def _likeness_to_words(past: Past, queries: Sequence[Query]) -> list[float]:
    """For each tool, how much of a clause's rarity the words of its past intents cover."""
    best = [0.0] * len(past.tools)
    for query in queries[:-1] or queries:
        found: dict[int, float] = defaultdict(float)
        most = 0.0
        for stem in query:
            most += past.tool_rarity.get(stem, 1.0)
            for tool, weight in past.tool_words.get(stem, ()):
                found[tool] += weight
        scale = 1 / max(most * (SATURATION + 1) / 2, _FEWEST_WORDS)
        for tool, weight in found.items():
            if weight * scale > best[tool]:
                best[tool] = weight * scale
    return best


def _company(
    past: Past, scores: Sequence[float], likeness: Callable[[str], float] | None
) -> list[float]:
    """For each tool, how well the best tool suits that it was picked together with."""
    beside = [0.0] * len(past.tools)
    for tool, score in enumerate(scores):
        own = score + likeness(past.tools[tool]) if likeness else score
        if own >= _GOOD_COMPANY:
            own = min(own, _BEST_COMPANY)
            for other, share in past.company[tool]:
                beside[other] = max(beside[other], own * share)
    return beside
