"""The lexical half of the ranking: how alike the words of an entry and of an intent are.

Rare words weigh more than common ones (inverse document frequency within the catalog). Words
score by BM25 over weighted fields, and meet their relatives: other forms, synonyms, words that
share groups of letters (the cosine of those). Both add up, so one pass over the words of an
intent is enough. Deterministic: no set is iterated, and sums go in the order of the words, not
of the catalog.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import add, mul, truediv
from typing import Final, NamedTuple

from helmdash.core.catalog.catalog import Catalog, CatalogEntry
from helmdash.core.ranking.synonyms import RELATED
from helmdash.core.text.words import Clause, term, words_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The numbers of one version, as measured on public tool-selection data.

    fields: what a word counts by where it stands. saturation, length: BM25's k1 and b.
    phrase: the part of its words' rarity that a keyword phrase earns when a clause has all of
    it. related: what a synonym counts, the word itself being 1. letters: letter groups against
    words. aside: what a clause counts whose sentence asks for nothing. per_clause: 1 judges
    each clause by its own best entry, 0 by the best of all clauses.
    """

    fields: Mapping[str, float]
    saturation: float
    length: float
    phrase: float
    related: float
    letters: float
    aside: float
    per_clause: float


WEIGHTS: Final = Weights(
    fields={
        "name": 3.0,
        "supersedes": 3.0,
        "keywords": 3.0,
        "kinds": 1.0,
        "description": 1.0,
        "typical_use": 1.0,
        "step_packs": 0.5,
        "limitations": 0.2,  # what it cannot do: the right subject, the wrong verb
    },
    saturation=1.2,
    length=0.4,
    phrase=0.75,
    related=0.5,
    letters=2.0,
    aside=0.45,
    per_clause=0.3,
)


# Letter groups in more entries than this tell nothing apart and cost the most time.
_COMMON_IN: Final = 60
_COMMON_SHARE: Final = 0.05


# Different words of a catalog that are read at most: an index takes some 20 microseconds for each.
# Ten thousand tools, described well, have a third of it; so it changes no order that a version of
# the ranking stands for. More are pasted books and random text, of 8 MiB up to a million.
MOST_WORDS: Final = 100_000


_KEYWORDS_ONLY: Final = frozenset({"intent_keywords"})
_MORE: Final = frozenset({"supersedes", "steps"})  # beside the metadata


# Where a feature occurs (positions in the catalog), and what it weighs there. Plain lists: an
# index of 75 entries has thousands of these, and objects around them would cost most of its time.
Postings = tuple[list[int], list[float]]
# Letter groups that occur in the same words: their number, what one of them counts in a query,
# and where they are.
Group = tuple[int, float, Postings]
# The same while an index is made: what a word counts, by position. Of 10,000 entries these are
# some hundred thousand pairs; in plain dicts of numbers the garbage collector need not look.
Counts = dict[int, float]


class Phrase(NamedTuple):
    """A keyword phrase: the stems a clause must have, and what that earns."""

    stems: frozenset[str]
    bonus: float


# Positions in the catalog, and the phrase that each of them has there: the same one, many times.
Phrases = tuple[list[int], list[Phrase]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The words of a catalog, ready to be asked. Depends on nothing but the catalog."""

    size: int
    stems: Mapping[str, Postings]
    grams: Mapping[str, Group]
    phrases: Mapping[str, Phrases]  # by the rarest stem of the phrase


def read_catalog(catalog: Catalog) -> Lexicon:
    """Collect the words of all entries, field by field."""
    known: dict[str, list[str]] = {}  # keyword phrases are often argument names: they come again
    phrases = [_phrases_of(entry, known) for entry in catalog.entries]
    fields = [_fields(entry, of) for entry, of in zip(catalog.entries, phrases, strict=True)]
    words = _most_telling(_word_counts(fields))
    # Sorted, so that no sum depends on the order of the catalog.
    order = sorted(words)
    stems, rarity = _stem_postings(words, order, len(fields))
    return Lexicon(
        size=len(fields),
        stems=stems,
        grams=_gram_postings(words, order, len(fields)),
        phrases=_phrase_postings(phrases, rarity),
    )


def score_clauses(lexicon: Lexicon, clauses: Sequence[Clause]) -> list[float]:
    """Each entry's likeness to a text given in clauses, 0.0 to 1.0, by position.

    Half of it is the likeness to all clauses together, half that to the clause which suits the
    entry best: so each part of a request finds its tool. The best entry has about 1; where no
    word is known, all have 0.
    """
    if not clauses or not lexicon.size:
        return [0.0] * lexicon.size
    factors = [1.0 if clause.is_request else WEIGHTS.aside for clause in clauses]
    scores = [_score(lexicon, clause.words) for clause in clauses]
    if len(clauses) == 1:
        return _of_top(scores[0])
    whole = _of_top(_weighted_sum(scores, factors))
    # One word alone ("and images?") is a clause only where there is nothing better.
    telling = [at for at, clause in enumerate(clauses) if len(clause.words) > 1]
    telling = telling or list(range(len(clauses)))
    best = _best_clause([scores[at] for at in telling], [factors[at] for at in telling])
    return [(all_ + one) / 2 for all_, one in zip(whole, best, strict=True)]


def _score(lexicon: Lexicon, words: Sequence[str]) -> list[float]:
    """The likeness of every entry to one clause, in units of rarity."""
    scores = [0.0] * lexicon.size
    terms = [term(word) for word in words]
    own = dict.fromkeys((stem for found in terms for stem in found.stems), 1.0)
    for stem in list(own):
        for other in RELATED.get(stem, ()):
            own.setdefault(other, WEIGHTS.related)
    for stem, factor in own.items():
        postings = lexicon.stems.get(stem)
        if postings is not None:
            for at, weight in zip(*postings):  # noqa: B905  (the hot loop)
                scores[at] += factor * weight
    groups: dict[int, tuple[float, Postings]] = {}
    for gram in dict.fromkeys(gram for found in terms for gram in found.grams):
        group = lexicon.grams.get(gram)
        if group is not None:
            number, factor, postings = group
            had = groups.get(number)
            groups[number] = (factor + had[0] if had else factor, postings)
    for factor, postings in groups.values():
        for at, weight in zip(*postings):  # noqa: B905  (the hot loop)
            scores[at] += factor * weight
    for stem in own:
        phrases = lexicon.phrases.get(stem)
        if phrases is not None:
            for at, phrase in zip(*phrases):  # noqa: B905  (the hot loop)
                if phrase.stems <= own.keys():
                    scores[at] += phrase.bonus
    return scores


def _of_top(scores: list[float]) -> list[float]:
    """The scores as shares of the highest."""
    top = max(scores, default=0.0)
    return [score / top for score in scores] if top > 0.0 else scores


def _weighted_sum(scores: Sequence[list[float]], factors: Sequence[float]) -> list[float]:
    total = [0.0] * len(scores[0])
    for of_clause, factor in zip(scores, factors, strict=True):
        # map and partial products: half the time of a comprehension over 10,000 entries.
        weighted = of_clause if factor == 1.0 else map(mul, of_clause, repeat(factor))
        total = list(map(add, total, weighted))
    return total


def _best_clause(scores: Sequence[list[float]], factors: Sequence[float]) -> list[float]:
    tops = [max(of_clause) for of_clause in scores]
    top = max(map(mul, tops, factors))
    best = [0.0] * len(scores[0])
    share = WEIGHTS.per_clause
    for of_clause, own, factor in zip(scores, tops, factors, strict=True):
        if own > 0.0:
            scale = factor / (own**share * top ** (1 - share))
            best = [
                one if (one := score * scale) > had else had
                for had, score in zip(best, of_clause, strict=True)
            ]
    return best


def _phrases_of(entry: CatalogEntry, known: dict[str, list[str]]) -> list[list[str]]:
    """The telling words of each keyword phrase."""
    found = []
    for text in entry.metadata_texts("intent_keywords"):
        if text not in known:
            known[text] = words_of(text)
        found.append(known[text])
    return [words for words in found if words]


def _fields(entry: CatalogEntry, phrases: Sequence[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The telling words of an entry by field."""
    # Tuples, which the garbage collector may forget.
    told = ((field, tuple(words_of("\n".join(parts)))) for field, parts in _texts(entry))
    found = {field: words for field, words in told if words}
    if phrases:
        found["keywords"] = tuple(word for words in phrases for word in words)
    return found


def _texts(entry: CatalogEntry) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The texts of an entry by field, but for its keywords."""
    yield "name", (entry.id,) if entry.id == entry.name else (entry.id, entry.name)
    if entry.metadata.keys() <= _KEYWORDS_ONLY and not entry.raw.keys() & _MORE:
        # All that most entries have: asking for each of the others takes as long as reading these.
        yield "description", (entry.description,)
        return
    yield "supersedes", entry.supersedes
    yield "kinds", entry.metadata_texts("accepts") + entry.metadata_texts("produces")
    yield "description", (entry.description,)
    yield "typical_use", (entry.metadata_text("typical_use"),)
    yield "step_packs", entry.step_packs
    yield "limitations", entry.metadata_texts("limitations")


def _word_counts(fields: Sequence[Mapping[str, Sequence[str]]]) -> dict[str, Counts]:
    """Where each word stands, and what it counts: more in telling fields, less in long ones."""
    lengths: dict[str, list[int]] = {field: [] for field in WEIGHTS.fields}
    for of_entry in fields:
        for field, words in of_entry.items():
            lengths[field].append(len(words))
    usual = {field: sum(found) / len(found) for field, found in lengths.items() if found}
    counts: defaultdict[str, Counts] = defaultdict(dict)
    for at, of_entry in enumerate(fields):
        bag: dict[str, float] = {}
        had = bag.get
        for field, words in of_entry.items():
            dilution = 1 - WEIGHTS.length + WEIGHTS.length * len(words) / usual[field]
            count = WEIGHTS.fields[field] / dilution
            for word in words:
                bag[word] = had(word, 0.0) + count
        for word, count in bag.items():
            counts[word][at] = count
    return counts


def _most_telling(words: dict[str, Counts]) -> dict[str, Counts]:
    """The words, or of very many those that count most anywhere: of names and keywords first."""
    if len(words) <= MOST_WORDS:
        return words
    order = sorted(words, key=lambda word: (-max(words[word].values()), word))
    return {word: words[word] for word in order[:MOST_WORDS]}


def _stem_postings(
    words: Mapping[str, Counts], order: Sequence[str], size: int
) -> tuple[dict[str, Postings], dict[str, float]]:
    """BM25 weights. Stems of the same words share one list."""
    k1 = WEIGHTS.saturation
    found: dict[str, Postings] = {}
    rarity: dict[str, float] = {}
    for of_stems, stems in _by_words({word: term(word).stems for word in order}).items():
        counts = _merged([words[word] for word in of_stems])
        rare = _bm25_rarity(size, len(counts))
        # most * tf / (k1 + tf), in C
        weights = map(mul, repeat(rare * (k1 + 1)), counts.values())
        weighed = map(truediv, weights, map(add, repeat(k1), counts.values()))
        postings = (list(counts), list(weighed))
        for stem in stems:
            found[stem], rarity[stem] = postings, rare
    return found, rarity


def _gram_postings(
    words: Mapping[str, Counts], order: Sequence[str], size: int
) -> dict[str, Group]:
    """Cosine weights: each entry's groups of letters have the length 1 together.

    Those that always occur in the same words share one list; those found nearly everywhere are
    left out.
    """
    most = max(_COMMON_IN, size * _COMMON_SHARE)
    grams_of = {word: term(word).grams for word in order}
    # Known before anything is merged: one such word is enough to make its groups common.
    common = {gram for word in order if len(words[word]) > most for gram in grams_of[word]}
    lengths = [0.0] * size
    groups: list[tuple[list[str], float, Postings]] = []
    for of_grams, grams in _by_words(grams_of).items():
        if grams[0] in common:
            continue
        counts = _merged([words[word] for word in of_grams])
        if len(counts) <= most:
            rare = math.log((size + 1) / (len(counts) + 0.5))
            values = list(map(mul, map(math.log1p, counts.values()), repeat(rare)))
            alike = len(grams)
            for at, square in zip(counts, map(mul, values, values)):  # noqa: B905  (the hot loop)
                lengths[at] += square * alike
            groups.append((grams, rare, (list(counts), values)))
    shrink = [1 / math.sqrt(length) if length else 0.0 for length in lengths]
    found: dict[str, Group] = {}
    for number, (grams, rare, (places, values)) in enumerate(groups):
        values[:] = map(mul, values, map(shrink.__getitem__, places))
        group = (number, WEIGHTS.letters * rare, (places, values))
        for gram in grams:
            found[gram] = group
    return found


def _by_words(features: Mapping[str, Sequence[str]]) -> dict[tuple[str, ...], list[str]]:
    """The features (stems, letter groups) by the words that have them."""
    words_with: defaultdict[str, list[str]] = defaultdict(list)
    for word, of_word in features.items():
        for feature in of_word:
            words_with[feature].append(word)
    found: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for feature, words in words_with.items():
        found[tuple(words)].append(feature)
    return found


def _merged(counts: Sequence[Counts]) -> Counts:
    """What several words count together; sums go in the order of the words."""
    if len(counts) == 1:
        return counts[0]
    total = counts[0].copy()
    had = total.get
    for of_word in counts[1:]:
        for at, count in of_word.items():
            total[at] = had(at, 0.0) + count
    return total


def _phrase_postings(
    phrases: Sequence[Sequence[Sequence[str]]], rarity: Mapping[str, float]
) -> dict[str, Phrases]:
    found: dict[str, Phrases] = {}
    # Keyword phrases come again: the same words are the same object (`_phrases_of`).
    known: dict[int, tuple[Phrases, Phrase]] = {}
    for at, of_entry in enumerate(phrases):
        for words in of_entry:
            read = known.get(id(words))
            if read is None:
                rarest, phrase = _read_phrase(words, rarity)
                read = known[id(words)] = (found.setdefault(rarest, ([], [])), phrase)
            (places, there), phrase = read
            places.append(at)
            there.append(phrase)
    return found


def _read_phrase(words: Sequence[str], rarity: Mapping[str, float]) -> tuple[str, Phrase]:
    """A phrase, and the rarest of its stems."""
    stems = list(dict.fromkeys(term(word).stems[0] for word in words))
    # Of a catalog with too many words (_most_telling) some are not known.
    rarest = max(stems, key=lambda stem: (rarity.get(stem, 0.0), stem))
    bonus = WEIGHTS.phrase * sum(rarity.get(stem, 0.0) for stem in stems)
    return rarest, Phrase(frozenset(stems), bonus)


def _bm25_rarity(entries: int, holding: int) -> float:
    return math.log(1 + (entries - holding + 0.5) / (holding + 0.5))
