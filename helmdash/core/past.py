"""The history half of the ranking: which tools were picked for intents like this one.

Two signs, added up (spec: history is a prior, not a ranker):
- a vote of each past plan for its tools, as strong as its nearest clause is near;
- the words of all the intents a tool was picked for, as if they were a description of it.

Both are trusted as far as the past repeats itself: where the same tool is hardly ever picked
twice, the tools of yesterday say little about those of today. So a history cannot hurt much.
Past intents may hold pasted text too; of those that ask for something only the asking is heard.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from helmdash.core.text import MOST_CLAUSES, Clause, at_most, clauses_of, term

Query = tuple[str, ...]
Hide = Callable[[str], str]


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
# Ages count in steps of this many half-lives, so that a history is not read anew all the time
# just because the clock moved on.
_AGE_STEP: Final = 0.25
# Measured together with the rest of RANKING_VERSION.
_VOTE: Final = 0.83  # what a certain vote adds to a lexical score of at most about 1
_WORDS: Final = 0.42  # and what a perfect match with a tool's past words adds
_VOTE_TRUST: Final = 0.9  # no single past plan is certain
_FARTHEST: Final = 0.05  # plans less near than this do not vote
_SATURATION: Final = 1.2  # BM25's k1 for the words of a tool's past
_FEWEST_WORDS: Final = 3.0  # a match of less rarity than this is never perfect
_BENEFIT_OF_DOUBT: Final = 20  # uses that a history is granted as repeating before it shows
_MOST_PLANS: Final = 2_000  # the newest; more would not fit into a fit's time


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is read of a past plan: its words (text or sketch), its tools, what it counts."""

    intent: str
    sketch: tuple[Query, ...] | None
    tools: tuple[str, ...]
    worth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """A history made ready: its clauses and its tools, each by the stems in them."""

    plans: tuple[_Plan, ...]
    plan_of_clause: tuple[int, ...]
    rarity: Mapping[str, float]
    unknown_rarity: float
    clauses: Mapping[str, tuple[tuple[int, float], ...]]
    tool_rarity: Mapping[str, float]
    tools: Mapping[str, tuple[tuple[str, float], ...]]
    trust: float


def past_scores(
    history: Sequence[PastPlan], clauses: Sequence[Clause], hide: Hide | None = None
) -> dict[str, float]:
    """What the past adds to the score of each tool that it knows. Plans come oldest first.

    hide: passes every word through the function that made the sketches in this history.
    """
    queries = _queries(clauses) if history else []
    if not queries:
        return {}
    plans = tuple(map(_plan, (plan for plan in history[-_MOST_PLANS:] if plan.weight > 0)))
    hide = _needed(hide, plans)
    past = _read_past(plans, hide)
    queries = _hidden(queries, hide)
    scores = {tool: _VOTE * past.trust * vote for tool, vote in _votes(past, queries).items()}
    for tool, likeness in _likeness_to_words(past, queries).items():
        scores[tool] = scores.get(tool, 0.0) + _WORDS * past.trust * likeness
    return scores


def sketch_of(intent: str, hide: Hide) -> tuple[Query, ...]:
    """The words of an intent's clauses, each made unreadable by `hide` (a keyed hash).

    Enough to tell how near later intents are, to whoever has the key, and nobody else.
    """
    return tuple(_hidden(_queries_of(intent), hide))


def similar(
    history: Sequence[PastPlan], intent: str, hide: Hide | None = None, limit: int = 5
) -> tuple[tuple[int, float], ...]:
    """Positions in `history` of the plans with the nearest intents, and how near: up to 1.

    Nearest first, the newer one first where two are as near. Age and weight play no part.
    """
    return _nearest(history, _queries_of(intent), hide, limit)


def similar_to_sketch(
    history: Sequence[PastPlan], sketch: Sequence[Query], limit: int = 5
) -> tuple[tuple[int, float], ...]:
    """The same for an intent that is known by its sketch; every plan has one too, and no text."""
    return _nearest(history, list(sketch), None, limit)


def _nearest(
    history: Sequence[PastPlan], queries: list[Query], hide: Hide | None, limit: int
) -> tuple[tuple[int, float], ...]:
    first = max(0, len(history) - _MOST_PLANS)
    plans = tuple(_plan(plan) for plan in history[first:])
    if not plans or not queries:
        return ()
    hide = _needed(hide, plans)
    found = _nearness(_read_past(plans, hide), _hidden(queries, hide))
    near = [(first + at, min(round(value, 6), 1.0)) for at, value in found.items()]
    near.sort(key=lambda pair: (-pair[1], -pair[0]))
    return tuple(pair for pair in near[:limit] if pair[1] > 0)


def _plan(plan: PastPlan) -> _Plan:
    worth = min(max(plan.weight, 0.0), 1.0)
    if plan.age_days is not None and plan.age_days > 0:
        steps = math.floor(plan.age_days / (HALF_LIFE_DAYS * _AGE_STEP))
        worth *= 0.5 ** min(steps * _AGE_STEP, 1_000.0)
    return _Plan(plan.intent, None if plan.intent else plan.sketch, _once(plan.tools), worth)


def _once(tools: tuple[str, ...]) -> tuple[str, ...]:
    return tools if len(tools) < 2 else tuple(dict.fromkeys(tools))


def _needed(hide: Hide | None, plans: Sequence[_Plan]) -> Hide | None:
    """Hiding changes no score, and costs a hash a word: only where sketches have to be met."""
    return hide if any(plan.sketch for plan in plans) else None


def _hidden(queries: list[Query], hide: Hide | None) -> list[Query]:
    return queries if hide is None else [tuple(map(hide, query)) for query in queries]


def _queries_of(intent: str) -> list[Query]:
    return _queries(at_most(MOST_CLAUSES, clauses_of(intent)))


def _queries(clauses: Sequence[Clause]) -> list[Query]:
    """The stems of each clause that asks for something; of all of them together comes last."""
    asking = [clause for clause in clauses if clause.is_request] or list(clauses)
    parts = [_stems(clause) for clause in asking if len(clause.words) > 1]
    whole = tuple(dict.fromkeys(stem for clause in asking for stem in _stems(clause)))
    return [*(part for part in dict.fromkeys(parts) if part != whole), whole] if whole else []


def _stems(clause: Clause) -> Query:
    return tuple(dict.fromkeys(stem for word in clause.words for stem in term(word).stems))


def _votes(past: _Past, queries: Sequence[Query]) -> dict[str, float]:
    """Noisy-or over the plans a tool was picked in: certain plans decide, doubtful ones add up."""
    doubt: dict[str, float] = {}
    for plan, nearness in sorted(_nearness(past, queries).items()):
        if nearness > _FARTHEST:
            voter = past.plans[plan]
            left = 1 - _VOTE_TRUST * voter.worth * nearness
            for tool in voter.tools:
                doubt[tool] = doubt.get(tool, 1.0) * left
    return {tool: 1 - left for tool, left in doubt.items()}


def _nearness(past: _Past, queries: Sequence[Query]) -> dict[int, float]:
    """For each past plan the cosine between its nearest clause and ours."""
    nearest: dict[int, float] = {}
    for query in queries:
        near: dict[int, float] = {}
        norm = 0.0
        for stem in query:
            rarity = past.rarity.get(stem)
            if rarity is None:
                # Words the past never saw make the intent less like any of it.
                norm += (past.unknown_rarity / 2) ** 2
                continue
            norm += rarity * rarity
            for clause, weight in past.clauses[stem]:
                near[clause] = near.get(clause, 0.0) + rarity * weight
        scale = 1 / math.sqrt(norm)
        for clause, product in near.items():
            plan = past.plan_of_clause[clause]
            if product * scale > nearest.get(plan, 0.0):
                nearest[plan] = product * scale
    return nearest


def _likeness_to_words(past: _Past, queries: Sequence[Query]) -> dict[str, float]:
    """For each tool, how much of a clause's rarity the words of its past intents cover."""
    best: dict[str, float] = {}
    for query in queries:
        found: dict[str, float] = {}
        most = 0.0
        for stem in query:
            most += past.tool_rarity.get(stem, 1.0) * (_SATURATION + 1) / 2
            for tool, weight in past.tools.get(stem, ()):
                found[tool] = found.get(tool, 0.0) + weight
        most = max(most, _FEWEST_WORDS)
        for tool, weight in found.items():
            best[tool] = max(best.get(tool, 0.0), weight / most)
    return best


@lru_cache(maxsize=16)
def _read_past(history: tuple[_Plan, ...], hide: Hide | None) -> _Past:
    """Index a history. Pure; kept, since one history serves many intents."""
    queries = [_words_of(plan, hide) for plan in history]
    plan_of_clause = [plan for plan, found in enumerate(queries) for _ in found]
    rarity = _plan_rarity(queries)
    tools, tool_rarity = _tool_postings(history, queries)
    return _Past(
        plans=history,
        plan_of_clause=tuple(plan_of_clause),
        rarity=rarity,
        unknown_rarity=math.log(1 + len(history)),
        clauses=_clause_postings([query for found in queries for query in found], rarity),
        tool_rarity=tool_rarity,
        tools=tools,
        trust=_trust(history),
    )


def _words_of(plan: _Plan, hide: Hide | None) -> list[Query]:
    if plan.sketch is not None:
        return list(plan.sketch)
    return _hidden(_queries_of(plan.intent), hide)


def _trust(history: Sequence[_Plan]) -> float:
    """The squared share of picks whose tool was picked in another plan as well."""
    uses: dict[str, int] = {}
    for plan in history:
        for tool in plan.tools:
            uses[tool] = uses.get(tool, 0) + 1
    repeated = sum(count for count in uses.values() if count > 1)
    share = (repeated + _BENEFIT_OF_DOUBT) / (sum(uses.values()) + _BENEFIT_OF_DOUBT)
    return share * share


def _plan_rarity(queries: Sequence[Sequence[Query]]) -> dict[str, float]:
    holding: dict[str, int] = {}
    for of_plan in queries:
        for stem in dict.fromkeys(stem for query in of_plan for stem in query):
            holding[stem] = holding.get(stem, 0) + 1
    return {stem: math.log(1 + len(queries) / count) for stem, count in holding.items()}


def _clause_postings(
    clauses: Sequence[Query], rarity: Mapping[str, float]
) -> dict[str, tuple[tuple[int, float], ...]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for at, query in enumerate(clauses):
        norm = math.sqrt(sum(rarity[stem] ** 2 for stem in query))
        for stem in query:
            found.setdefault(stem, []).append((at, rarity[stem] / norm))
    return {stem: tuple(postings) for stem, postings in found.items()}


def _tool_postings(
    history: Sequence[_Plan], queries: Sequence[Sequence[Query]]
) -> tuple[dict[str, tuple[tuple[str, float], ...]], dict[str, float]]:
    counts: dict[str, dict[str, float]] = {}
    for plan, of_plan in zip(history, queries, strict=True):
        whole = of_plan[-1] if of_plan else ()
        for tool in plan.tools:
            of_tool = counts.setdefault(tool, {})
            for stem in whole:
                of_tool[stem] = of_tool.get(stem, 0.0) + plan.worth
    found: dict[str, list[tuple[str, float]]] = {}
    for tool, of_tool in counts.items():
        for stem, count in of_tool.items():
            found.setdefault(stem, []).append((tool, count))
    rarity = {
        stem: math.log(1 + (len(counts) - len(holders) + 0.5) / (len(holders) + 0.5))
        for stem, holders in found.items()
    }
    k1 = _SATURATION
    postings = {
        stem: tuple((tool, rarity[stem] * n * (k1 + 1) / (k1 + n)) for tool, n in holders)
        for stem, holders in found.items()
    }
    return postings, rarity
