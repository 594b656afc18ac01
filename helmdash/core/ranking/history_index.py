"""A history made ready to be asked: its intents and its tools, each by the stems in them.

All sums go in the order of the plans: the same history gives the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from helmdash.core.ranking.request_words import COMMON_STEMS
from helmdash.core.text.words import MOST_CLAUSES, Clause, at_most, clauses_of, term

# Measured together with the rest of RANKING_VERSION.
SATURATION: Final = 1.2  # BM25's k1 for the words of a tool's past
_BENEFIT_OF_DOUBT: Final = 14  # uses that a history is granted as repeating before it shows
# What is taken for known about words before a history has shown it: that many more plans (and
# tools), of which this share have each of the common words. It fades as the history grows.
_IMAGINED: Final = 10
_HAVE_COMMON: Final = 0.3
_PICKS_BEFORE_COMPANY: Final = 1.0  # one shared pick is no habit yet
_PLANS_BEFORE_HABIT: Final = 5.0  # nor is a tool of the first plan what everybody wants
# As many as a plan has steps. A client may list a thousand, and pairs of them are a million.
_MOST_IN_COMPANY: Final = 50

# Characters of an intent whose words are kept: people's are shorter, pasted pages longer.
_LONGEST_KEPT: Final = 2_000

Query = tuple[str, ...]
HashWord = Callable[[str], str]
# Where a stem occurs, by number of clause, of plan or of tool, and what it weighs there.
Postings = Mapping[str, Sequence[tuple[int, float]]]


@dataclass(frozen=True, slots=True)
class IndexedPlan:
    """What is read of a past plan: its words (text, or sketch where it is not None), its tools,
    what it counts."""

    intent: str
    sketch: tuple[Query, ...] | None
    tools: tuple[str, ...]
    worth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """An indexed history. `plans[k]` and `tools[k]` are what the numbers in the postings mean."""

    plans: tuple[IndexedPlan, ...]
    tools: tuple[str, ...]
    tools_of_plan: tuple[tuple[int, ...], ...]
    plan_of_clause: tuple[int, ...]
    rarity: Mapping[str, float]
    common: frozenset[str]
    clauses: Postings  # by clause
    wholes: Postings  # by plan: all its clauses together
    tool_rarity: Mapping[str, float]
    tool_words: Postings  # by tool
    trust: float  # 0 to 1: how far tools come back at all
    trust_of_tool: tuple[float, ...]
    habit: tuple[float, ...]  # the share of the plans that each tool was picked in
    company: tuple[tuple[tuple[int, float], ...], ...]  # what was picked beside it, how often

    def unknown_rarity(self, stem: str) -> float:
        """How telling a word is that no past plan has: as the rarest of those that one has."""
        return _rarity(len(self.plans), 1, stem in self.common)


def queries_of(clauses: Sequence[Clause]) -> list[Query]:
    """The stems of each clause that asks for something; of all of them together comes last."""
    asking = [clause for clause in clauses if clause.is_request] or list(clauses)
    parts = [_stems(clause) for clause in asking if len(clause.words) > 1]
    whole = tuple(dict.fromkeys(stem for clause in asking for stem in _stems(clause)))
    return [*(part for part in dict.fromkeys(parts) if part != whole), whole] if whole else []


def words_of_intent(intent: str) -> tuple[Query, ...]:
    """`queries_of` a text. Pure; those of intents of usual length are kept, since a history grows
    by one plan at a time."""
    return _words_kept(intent) if len(intent) <= _LONGEST_KEPT else _words_of_text(intent)


def _words_of_text(intent: str) -> tuple[Query, ...]:
    return tuple(queries_of(at_most(MOST_CLAUSES, clauses_of(intent))))


_words_kept = lru_cache(maxsize=4_096)(_words_of_text)


def hashed(queries: Sequence[Query], hash_word: HashWord | None) -> Sequence[Query]:
    """The same words as `hash_word` makes them; None: as they are."""
    return queries if hash_word is None else [tuple(map(hash_word, query)) for query in queries]


@lru_cache(maxsize=16)
def read_past(plans: tuple[IndexedPlan, ...], hash_word: HashWord | None) -> Past:
    """Index a history. hash_word None: it holds no sketches. Pure; kept, since one history serves
    many intents."""
    queries = [_words_of(plan, hash_word) for plan in plans]
    common = COMMON_STEMS if hash_word is None else frozenset(map(hash_word, COMMON_STEMS))
    rarity = _plan_rarity(queries, common)
    parts = [found[:-1] or found for found in queries]
    tools = tuple(dict.fromkeys(tool for plan in plans for tool in plan.tools))
    number = {tool: at for at, tool in enumerate(tools)}
    tools_of_plan = tuple(tuple(number[t] for t in dict.fromkeys(plan.tools)) for plan in plans)
    tool_words, tool_rarity = _tool_words(plans, tools_of_plan, queries, common)
    uses = _sums(len(tools), tools_of_plan, [1.0] * len(plans))
    share = _share_that_repeats(uses)
    worths = [plan.worth for plan in plans]
    worth_of_tool = _sums(len(tools), tools_of_plan, worths)
    return Past(
        plans=plans,
        tools=tools,
        tools_of_plan=tools_of_plan,
        plan_of_clause=tuple(plan for plan, found in enumerate(parts) for _ in found),
        rarity=rarity,
        common=common,
        clauses=_cosine_postings([query for found in parts for query in found], rarity),
        wholes=_cosine_postings([found[-1] if found else () for found in queries], rarity),
        tool_rarity=tool_rarity,
        tool_words=tool_words,
        trust=share**2,
        trust_of_tool=tuple((1 - (1 - share) ** count) ** 4 for count in uses),
        habit=tuple(worth / (sum(worths) + _PLANS_BEFORE_HABIT) for worth in worth_of_tool),
        company=_company(tools_of_plan, worths, worth_of_tool),
    )


def _words_of(plan: IndexedPlan, hash_word: HashWord | None) -> Sequence[Query]:
    if plan.sketch is not None:
        return plan.sketch
    return hashed(words_of_intent(plan.intent), hash_word)


def _stems(clause: Clause) -> Query:
    return tuple(dict.fromkeys(stem for word in clause.words for stem in term(word).stems))


def _sums(
    size: int, tools_of_plan: Sequence[Sequence[int]], values: Sequence[float]
) -> list[float]:
    """For each tool the sum of the values of its plans."""
    total = [0.0] * size
    for tools, value in zip(tools_of_plan, values, strict=True):
        for tool in tools:
            total[tool] += value
    return total


def _share_that_repeats(uses: Sequence[float]) -> float:
    """The share of picks whose tool was picked in another plan as well."""
    repeated = sum(count for count in uses if count > 1)
    return (repeated + _BENEFIT_OF_DOUBT) / (sum(uses) + _BENEFIT_OF_DOUBT)


def _rarity(plans: int, holding: int, is_common: bool) -> float:
    granted = _IMAGINED * _HAVE_COMMON if is_common else 0.0
    return math.log(1 + (plans + _IMAGINED) / (holding + granted))


def _plan_rarity(queries: Sequence[Sequence[Query]], common: frozenset[str]) -> dict[str, float]:
    holding: dict[str, int] = {}
    for of_plan in queries:
        for stem in dict.fromkeys(stem for query in of_plan for stem in query):
            holding[stem] = holding.get(stem, 0) + 1
    return {stem: _rarity(len(queries), n, stem in common) for stem, n in holding.items()}


def _cosine_postings(
    texts: Sequence[Query], rarity: Mapping[str, float]
) -> dict[str, list[tuple[int, float]]]:
    """What each stem adds to a text's product with a query, before that is scaled."""
    found: dict[str, list[tuple[int, float]]] = {}
    for at, query in enumerate(texts):
        norm = math.sqrt(sum(rarity[stem] ** 2 for stem in query))
        for stem in query:
            found.setdefault(stem, []).append((at, rarity[stem] ** 2 / norm))
    return found


def _tool_words(
    plans: Sequence[IndexedPlan],
    tools_of_plan: Sequence[Sequence[int]],
    queries: Sequence[Sequence[Query]],
    common: frozenset[str],
) -> tuple[dict[str, list[tuple[int, float]]], dict[str, float]]:
    """The words of the intents each tool was picked for, and how rare they are among tools."""
    counts: dict[str, dict[int, float]] = {}
    for plan, tools, of_plan in zip(plans, tools_of_plan, queries, strict=True):
        # Each word is about one of the tools, and nobody knows which.
        count = plan.worth / math.sqrt(len(tools)) if tools else 0.0
        for stem in of_plan[-1] if of_plan else ():
            of_stem = counts.setdefault(stem, {})
            for tool in tools:
                of_stem[tool] = of_stem.get(tool, 0.0) + count
    size = len({tool for tools in tools_of_plan for tool in tools})
    rarity = {
        stem: _tool_rarity(size, len(holders), stem in common) for stem, holders in counts.items()
    }
    postings = {
        stem: [
            (tool, rarity[stem] * n * (SATURATION + 1) / (SATURATION + n))
            for tool, n in holders.items()
        ]
        for stem, holders in counts.items()
    }
    return postings, rarity


def _tool_rarity(tools: int, holding: int, is_common: bool) -> float:
    granted = _IMAGINED * _HAVE_COMMON if is_common else 0.0
    return math.log(1 + (tools - holding + _IMAGINED + 0.5) / (holding + granted + 0.5))


def _company(
    tools_of_plan: Sequence[Sequence[int]],
    worths: Sequence[float],
    worth_of_tool: Sequence[float],
) -> tuple[tuple[tuple[int, float], ...], ...]:
    """For each tool the others of its plans, with the share of its picks they came along in. Of a
    plan the first _MOST_IN_COMPANY tools count."""
    together: list[dict[int, float]] = [{} for _ in worth_of_tool]
    for tools, worth in zip(tools_of_plan, worths, strict=True):
        picked = tools[:_MOST_IN_COMPANY]
        for one in picked:
            for other in picked:
                if other != one:
                    together[one][other] = together[one].get(other, 0.0) + worth
    return tuple(
        tuple((other, n / (picks + _PICKS_BEFORE_COMPANY)) for other, n in others.items())
        for others, picks in zip(together, worth_of_tool, strict=True)
    )
