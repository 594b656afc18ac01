"""Doubt: whether a ranking may be trusted with leaving entries out.

Source: product.md 3 and spec/helmdeck.md 24, B6. The seed looked at the gap between ranks 1 and 2,
which several requests in one text close, and one accidental match opens. Here each request of the
intent is heard alone: does any entry clearly serve it, and how much of what serves it is not
shown? Several requests with several leaders are no doubt as long as their leaders are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from helmdash.core.lexical import Lexicon
from helmdash.core.prepared import PreparedCatalog
from helmdash.core.synonyms import RELATED
from helmdash.core.text import Clause, both_ends, clauses_of, term

# Clauses that are judged, from both ends of the intent: it bounds the time on pasted text.
_MOST_CLAUSES: Final = 24
_RELATED: Final = 0.5  # what a synonym counts in a match, as in the ranking
# An entry that has half of a clause's words serves it clearly ("draft an illustration").
_CLEAR: Final = 0.5
# Of an intent with pasted text around it, most clauses ask for nothing of ours: only where fewer
# than half are clear, the words say too little. Without pasted text every clause counts.
_CLEAR_SHARE: Final = 0.5
# The part of the matches of one clause that may go unseen. Matches count by their squares: it is
# the leaders that matter, not the long tail of entries that share one common word.
_UNSEEN: Final = 0.25


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the ranking may be wrong: a sentence.

    share: of the matches of the worst clause, the part that lies with entries not shown (1.0
    where nothing clearly matches). intents: the clauses that were judged.
    """

    share: float
    intents: int
    why: str


@dataclass(frozen=True, slots=True)
class _Heard:
    """How the catalog answers one clause."""

    is_clear: bool
    unseen: float


def doubt_of(prepared: PreparedCatalog, intent: str, *, hidden: Collection[int]) -> Doubt | None:
    """Say whether leaving out the `hidden` entries (positions) is in doubt; None: it is not.

    Nothing hidden, no doubt: the model sees every entry and can choose for itself.
    """
    if not hidden:
        return None
    clauses = clauses_of(both_ends(intent))
    asking = [clause for clause in clauses if clause.is_request] or clauses
    heard = [_hear(prepared.index.lexicon, clause, hidden) for clause in _ends_of(asking)]
    clear = [one for one in heard if one.is_clear]
    if not clear:
        return Doubt(1.0, len(heard), "No entry clearly matches the words of the intent.")
    has_paste = len(asking) < len(clauses)
    if len(clear) < len(heard) * (_CLEAR_SHARE if has_paste else 1.0):
        missed = len(heard) - len(clear)
        why = f"{missed} of {len(heard)} parts of the intent match no entry clearly."
        return Doubt(1.0, len(heard), why)
    share = max(one.unseen for one in clear)
    if share > _UNSEEN:
        why = f"{share:.0%} of what matches a part of the intent would not be shown."
        return Doubt(round(share, 3), len(heard), why)
    return None


def _ends_of(clauses: Sequence[Clause]) -> Sequence[Clause]:
    if len(clauses) <= _MOST_CLAUSES:
        return clauses
    half = _MOST_CLAUSES // 2
    return [*clauses[:half], *clauses[-half:]]


def _hear(lexicon: Lexicon, clause: Clause, hidden: Collection[int]) -> _Heard:
    """Match a clause by whole words: the letter groups of the ranking match a little of all."""
    scores: dict[int, float] = {}
    covered: dict[int, float] = {}
    for word in clause.words:
        for at, (score, cover) in _matches(lexicon, word).items():
            scores[at] = scores.get(at, 0.0) + score
            covered[at] = covered.get(at, 0.0) + cover
    mass = sum(score * score for score in scores.values())
    unseen = sum(score * score for at, score in scores.items() if at in hidden)
    return _Heard(
        is_clear=max(covered.values(), default=0.0) >= _CLEAR * len(clause.words),
        unseen=unseen / mass if mass else 0.0,
    )


def _matches(lexicon: Lexicon, word: str) -> dict[int, tuple[float, float]]:
    """The entries that have a word or a relative of it: how much it weighs there, and whether it
    is the word itself (1.0) or a relative."""
    stems = dict.fromkeys(term(word).stems, 1.0)
    for stem in list(stems):
        for other in RELATED.get(stem, ()):
            stems.setdefault(other, _RELATED)
    found: dict[int, tuple[float, float]] = {}
    for stem, factor in stems.items():
        places, weights = lexicon.stems.get(stem, ((), ()))
        for at, weight in zip(places, weights, strict=True):
            score, cover = found.get(at, (0.0, 0.0))
            found[at] = (score + factor * weight, max(cover, factor))
    return found
