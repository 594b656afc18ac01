"""Entries that a text may have meant, for people and agents to choose from.

A ranking always has a first place, and it ranks by relatives and by kinds of data too: for
"youtube.transcript" the first of the demo catalog makes animations and takes a transcript. As an
answer to "what else could do this?" that is nonsense, and none is better than nonsense.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Final

from helmdash.core.catalog.catalog import CatalogEntry
from helmdash.core.planning.plans import META_TOOLS
from helmdash.core.ranking.ranking import Index, order_entries
from helmdash.core.text.words import both_ends, term, words_of

# An entry that tells this share of what the words asked for weigh is about them: of two words one
# that is not the commoner ("query" of "database.query" is shared with searches of other things).
_SHARE: Final = 0.5
# A request asks for several things, and no entry is about half of its words: so many will do.
_MANY: Final = 2
# Reading the words of so many entries takes 10 ms. Further down nothing is alike.
_MOST_READ: Final = 200


def suggest_entries(index: Index, text: str, limit: int) -> tuple[str, ...]:
    """The ids most like a text, best first, of those whose own words tell what it asks for.

    Own words are those of the id, the name, the description, the keywords and the typical use. The
    planner's own tools are never among them.
    """
    asked = dict.fromkeys(_stems(both_ends(text).replace(".", " ")))
    if not asked:
        return ()
    entries = index.entries
    ranking = order_entries(index, text)
    ranked = [entries[at] for at in ranking.order[:_MOST_READ] if ranking.scores[at] > 0]
    told = [(entry.id, _told(entry)) for entry in ranked]
    known = Counter(stem for _, stems in told for stem in stems if stem in asked)
    weights = {stem: math.log((len(entries) + 1) / (known[stem] + 0.5)) for stem in asked}
    least = _SHARE * sum(weights.values())
    found: list[str] = []
    for id, stems in told:
        shared = [stem for stem in asked if stem in stems]
        is_about = len(shared) >= _MANY or sum(weights[stem] for stem in shared) >= least
        if shared and is_about and id not in META_TOOLS:
            found.append(id)
    return tuple(found[:limit])


def _told(entry: CatalogEntry) -> frozenset[str]:
    texts = (
        entry.id.replace(".", " "),
        entry.name.replace(".", " "),
        entry.description,
        *entry.metadata_texts("intent_keywords"),
        entry.metadata_text("typical_use"),
    )
    return frozenset(_stems(" ".join(texts)))


def _stems(text: str) -> Iterable[str]:
    """One stem for each word, the last (the widest): forms of one word have it in common."""
    return (term(word).stems[-1].lstrip("~") for word in words_of(text))
