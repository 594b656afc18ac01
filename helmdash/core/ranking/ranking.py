"""Ranking: every entry of a catalog by its likeness to an intent. It removes nothing.

Source: helmdeck ADR 050 (field-weighted, ties by id, a prior from past plans) without its defects:
the full catalog is ranked, in any script, each clause of the intent is heard, and the past counts.
Neither the order of the catalog nor the process makes a difference: scores are rounded before they
are compared, and ties go by id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from helmdash.answers import answer
from helmdash.core.catalog.catalog import Catalog, CatalogEntry, EntryKind
from helmdash.core.ranking.history import PastPlan, past_scores
from helmdash.core.ranking.lexical import Lexicon, read_catalog, score_clauses
from helmdash.core.text.words import MOST_CLAUSES, Clause, at_most, both_ends, clauses_of, run_of

__all__ = [
    "RANKING_VERSION",
    "Index",
    "PastPlan",
    "Ranked",
    "Ranking",
    "order_as_recalled",
    "order_entries",
    "prepare_index",
    "rank",
]

# Names the weights, word lists and rules of `lexical`, `past`, `text`, `synonyms` and
# `request_words` together: an edit that can change an order needs a new version, and what a Trim
# says stays true of the fits that carry it. "lexical-1" (until plans were recorded) cannot be run
# any more: its weights are those of today, but the past counted by other rules (votes and words
# only, without company, habit, age, or shared votes), and two sets of rules are not kept alive.
RANKING_VERSION: Final = "lexical-2"

_DIGITS: Final = 6  # scores closer than this are ties, decided by id
# A pipeline that stands in for a pack which the intent names comes before that pack.
_STAND_IN_LEAD: Final = 1.01


@answer("RankedEntry")
@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An entry with what its score is made of.

    lexical: its likeness to the intent by the words. history: what past plans add.
    """

    id: str
    kind: EntryKind
    score: float
    lexical: float
    history: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Positions in `catalog.entries`, best first; and the scores by position.

    `history` has only the entries that past plans speak for.
    """

    order: tuple[int, ...]
    scores: Sequence[float]
    lexical: Sequence[float]
    history: Mapping[int, float]
    substitutes: frozenset[int]  # entries that supersede a pack which the intent names


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitute:
    """An entry that supersedes a pack: the words that name it, and where it is; None: not here."""

    at: int
    pack_at: int | None
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A catalog made ready to be ranked. Immutable; depends on nothing but the catalog."""

    entries: tuple[CatalogEntry, ...]
    positions: Mapping[str, int]
    by_id: tuple[int, ...]
    lexicon: Lexicon
    substitutes: tuple[Substitute, ...]


def prepare_index(catalog: Catalog) -> Index:
    """Index a catalog. Keep it per catalog revision: it costs some ten rankings."""
    positions = {entry.id: at for at, entry in enumerate(catalog.entries)}
    return Index(
        entries=catalog.entries,
        positions=positions,
        by_id=tuple(sorted(range(len(catalog.entries)), key=lambda at: catalog.entries[at].id)),
        lexicon=read_catalog(catalog),
        substitutes=tuple(_substitutes(catalog, positions)),
    )


def rank(
    index: Index,
    intent: str,
    history: Sequence[PastPlan] = (),
    *,
    hash_word: Callable[[str], str] | None = None,
) -> tuple[Ranked, ...]:
    """Every entry, best first, ties by id. An intent without a known word scores all 0.

    history: past plans, oldest first; tools this catalog does not have are ignored. hash_word: how
    the words of past plans were hashed that come as sketches (see `history.sketch_of`); None: none
    do.
    """
    found = order_entries(index, intent, history, hash_word=hash_word)
    return tuple(
        Ranked(
            id=index.entries[at].id,
            kind=index.entries[at].kind,
            score=found.scores[at],
            lexical=found.lexical[at],
            history=found.history.get(at, 0.0),
        )
        for at in found.order
    )


def order_entries(
    index: Index,
    intent: str,
    history: Sequence[PastPlan] = (),
    *,
    hash_word: Callable[[str], str] | None = None,
) -> Ranking:
    """As `rank`, by position: what fitting works with. hash_word None: no past plan is a sketch."""

    def recalled(clauses: Sequence[Clause], lexical: Sequence[float]) -> Mapping[str, float]:
        places = index.positions
        return past_scores(
            history,
            clauses,
            hash_word,
            lambda tool: lexical[places[tool]] if tool in places else 0.0,
        )

    return _ordered(index, intent, recalled)


def order_as_recalled(index: Index, intent: str, recalled: Mapping[str, float]) -> Ranking:
    """As `order_entries` gave it when past plans added this to the scores, by id: of a Trim its
    `history`. The plans of that moment are not needed, nor kept."""
    return _ordered(index, intent, lambda clauses, lexical: recalled)


_Recall = Callable[[Sequence[Clause], Sequence[float]], Mapping[str, float]]


def _ordered(index: Index, intent: str, recall: _Recall) -> Ranking:
    """recall: what past plans add, by id, for the clauses of the intent and the scores so far."""
    intent = both_ends(intent)
    clauses = at_most(MOST_CLAUSES, clauses_of(intent))
    lexical = score_clauses(index.lexicon, clauses)
    substitutes = _prefer_substitutes(index, intent, lexical)
    lexical = [round(score, _DIGITS) if score else 0.0 for score in lexical]
    places = index.positions
    found = recall(clauses, lexical)
    past = {places[tool]: round(score, _DIGITS) for tool, score in found.items() if tool in places}
    scores = lexical
    if past:
        scores = [round(s + past.get(at, 0.0), _DIGITS) for at, s in enumerate(lexical)]
    # A stable sort of what is sorted by id already leaves ties in the order of their ids.
    order = sorted(index.by_id, key=scores.__getitem__, reverse=True)
    return Ranking(
        order=tuple(order), scores=scores, lexical=lexical, history=past, substitutes=substitutes
    )


def _substitutes(catalog: Catalog, positions: Mapping[str, int]) -> list[Substitute]:
    return [
        Substitute(at=at, pack_at=positions.get(pack), runs=_runs(pack))
        for at, entry in enumerate(catalog.entries)
        for pack in entry.supersedes
    ]


def _runs(pack: str) -> tuple[str, ...]:
    """The words that name a pack: all of its name, or its last part if that is telling enough."""
    verb = run_of(pack.rpartition(".")[2])
    runs = (run_of(pack), verb) if len(verb.split()) > 1 else (run_of(pack),)
    return tuple(run for run in runs if run.strip())


def _prefer_substitutes(index: Index, intent: str, lexical: list[float]) -> frozenset[int]:
    """Lift entries above the named packs they supersede; tell which entries those are."""
    if not index.substitutes:
        return frozenset()
    said = run_of(intent)
    named = [found for found in index.substitutes if any(run in said for run in found.runs)]
    for found in named:
        if found.pack_at is not None and found.pack_at != found.at:
            lead = lexical[found.pack_at] * _STAND_IN_LEAD
            lexical[found.at] = max(lexical[found.at], lead)
    return frozenset(found.at for found in named)
