"""Doubt: whether a ranking may be trusted with leaving out entries, or what they do.

The gap between ranks 1 and 2 says little: several requests in one text close it, and one accidental
match opens it. Here each request of the intent is heard alone: does any entry clearly serve it, and
how much of what serves it is not shown? Where nothing clearly serves it, entries that are shown by
their names alone leave a model to guess. Several requests with several leaders are no doubt as long
as their leaders are shown.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from helmdash.core.fitting.prepared import PreparedCatalog
from helmdash.core.ranking.lexical import Lexicon
from helmdash.core.ranking.synonyms import RELATED
from helmdash.core.text.words import Clause, both_ends, clauses_of, term

# Stored with every fit that asked a filter. A change of when it is asked, of its texts or of what
# is read of its answer (core.planning.filter_pass) is a new version.
FILTER_VERSION: Final = "filter-1"

# Clauses that are judged, from both ends of the intent: it bounds the time on pasted text.
_MOST_CLAUSES: Final = 24
_RELATED: Final = 0.5  # what a synonym counts in a match, as in the ranking
# The thresholds are chosen on public tool-selection data fitted into tight rooms. Evidence below
# this catches half to two thirds of the intents that lost a needed tool, in a fifth to two fifths
# of all; the gap of ranks 1 and 2 tells nothing there.
_FAINT: Final = 0.15
# A clause whose best match reaches less of one rare word than this is a request nobody answers.
_UNHEARD: Final = 0.10
# More than half of what leads a clause is not shown: then its leaders are.
_UNSEEN: Final = 0.50
# Past plans add up to 1.25 to a score whose words give up to 1: this is a near intent, repeated.
_WELL_RECALLED: Final = 0.50


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the ranking may be wrong: a sentence.

    share: of the matches of the worst clause, the part that lies with entries not shown.
    intents: the clauses that were judged.
    """

    share: float
    intents: int
    why: str


@dataclass(frozen=True, slots=True)
class _Heard:
    """How the catalog answers one clause: its best match in units of one rare word, how many
    words it has, and which part of its matches is not shown."""

    best: float
    words: int
    unseen: float


def doubt_of(
    prepared: PreparedCatalog,
    intent: str,
    *,
    hidden: Collection[int],
    named: Collection[int] = (),
    recalled: float = 0.0,
) -> Doubt | None:
    """Say whether hiding entries (their positions) is in doubt; None: it is not.

    named: shown by their names alone. With neither there is no doubt: the model is told of every
    entry and can choose for itself. recalled: the
    most that past plans add to any entry's score; where they remember the intent well, it does
    not matter that no description has its words.
    """
    if not hidden and not named:
        return None
    clauses = clauses_of(both_ends(intent))
    asking = [clause for clause in clauses if clause.is_request] or clauses
    heard = [_hear(prepared.index.lexicon, clause, hidden) for clause in _ends_of(asking)]
    if len(asking) < len(clauses):
        # Much of what seems to ask for something is pasted too: the better half is the request.
        heard = sorted(heard, key=lambda one: -one.best)[: -(-len(heard) // 2)]
    share = round(max((one.unseen for one in heard), default=0.0), 3)
    why = ""
    if share > _UNSEEN:
        why = f"{share:.0%} of what best matches a part of the intent would not be shown."
    elif recalled < _WELL_RECALLED:
        why = _unmatched(heard)
    return Doubt(share, len(heard), why) if why else None


def _unmatched(heard: Sequence[_Heard]) -> str:
    """Why the words of an intent tell too little; "" where they tell enough."""
    words = sum(one.words for one in heard)
    if sum(one.best for one in heard) <= _FAINT * words:
        return "The words of the intent hardly tell the entries apart."
    unheard = sum(one.best < _UNHEARD for one in heard)
    if unheard:
        return f"{unheard} of {len(heard)} parts of the intent match no entry."
    return ""


def _ends_of(clauses: Sequence[Clause]) -> Sequence[Clause]:
    if len(clauses) <= _MOST_CLAUSES:
        return clauses
    half = _MOST_CLAUSES // 2
    return [*clauses[:half], *clauses[-half:]]


def _hear(lexicon: Lexicon, clause: Clause, hidden: Collection[int]) -> _Heard:
    """Match a clause by whole words: the letter groups of the ranking match a little of all.

    Matches count by their squares in what is unseen: it is the leaders that matter, not the long
    tail of entries that share one common word.
    """
    scores: dict[int, float] = {}
    for word in clause.words:
        _add_matches(lexicon, word, scores)
    mass = sum(score * score for score in scores.values())
    unseen = sum(score * score for at, score in scores.items() if at in hidden)
    return _Heard(
        best=max(scores.values(), default=0.0) / _rare_word(lexicon.size),
        words=len(clause.words),
        unseen=unseen / mass if mass else 0.0,
    )


def _add_matches(lexicon: Lexicon, word: str, scores: dict[int, float]) -> None:
    """Add what a word and its relatives weigh in each entry that has them."""
    stems = dict.fromkeys(term(word).stems, 1.0)
    for stem in list(stems):
        for other in RELATED.get(stem, ()):
            stems.setdefault(other, _RELATED)
    for stem, factor in stems.items():
        places, weights = lexicon.stems.get(stem, ((), ()))
        for at, weight in zip(places, weights, strict=True):
            scores[at] = scores.get(at, 0.0) + factor * weight


def _rare_word(entries: int) -> float:
    """About the most that one word weighs: two stems, found in a single entry, prominently."""
    return 4.4 * math.log(2 + entries / 1.5)
