"""From a query's terms (core.text.query_terms) to conditions of the database.

Each list has a table of its fields. A term that asks for values of an indexed column is served by
its index. Any other (left out, a range, `has`) is tried on one row after the other, so a list tries
it on so many of its newest rows at a time (queries.lists.reach), and says how far it looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db.models import Q

from helmdash.core.text.query_terms import Field, Term, is_like

# What a term asks for of a project's rows.
Asking = Callable[[int, Term], Q]


@dataclass(frozen=True, slots=True, kw_only=True)
class TermTable:
    """The fields of a list, and what they ask for.

    numbers, words: the columns behind fields. has: what each word of the field `has` means. others:
    all that is neither. indexed: fields whose values an index finds. offered: values that were
    recorded, of fields without words of their own.
    """

    fields: tuple[Field, ...]
    numbers: Mapping[str, str]
    words: Mapping[str, str]
    has: Mapping[str, Q]
    others: Mapping[str, Asking]
    indexed: frozenset[str] = frozenset()
    offered: Mapping[str, Callable[[int], tuple[str, ...]]] = field(default_factory=dict)

    def is_indexed(self, term: Term) -> bool:
        """Whether an index finds what the term asks for."""
        return not term.is_negated and term.field in self.indexed

    def served(self, terms: Sequence[Term] | None) -> tuple[Term, ...]:
        """The terms that indexes serve."""
        return tuple(term for term in terms or () if self.is_indexed(term))

    def tried(self, terms: Sequence[Term] | None) -> tuple[Term, ...]:
        """The terms that are tried on one row after the other."""
        return tuple(term for term in terms or () if not self.is_indexed(term))

    def conditions(self, project_id: int, terms: Iterable[Term]) -> Q:
        """What holds of a row for which all terms do. As many queries as the terms need to know
        what was recorded."""
        found = Q()
        for term in terms:
            asked = self._condition(project_id, term)
            found &= ~asked if term.is_negated else asked
        return found

    def values(self, project_id: int, asked: Field) -> tuple[str, ...]:
        """Values that a field may be asked for: all words, or what was recorded, as many as a list
        offers. One query at most."""
        if asked.words:
            return tuple(asked.words)
        known = self.offered.get(asked.name)
        return known(project_id) if known else ()

    def _condition(self, project_id: int, term: Term) -> Q:
        if term.field in self.others:
            return self.others[term.field](project_id, term)
        if term.field in self.numbers:
            return between(self.numbers[term.field], term)
        if term.field in self.words:
            return Q(**{f"{self.words[term.field]}__in": term.values})
        found = Q()
        for word in term.values:
            found |= self.has[word]
        return found


def same(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Words that each stand for themselves."""
    return {word: (word,) for word in words}


YES_OR_NO: Final = same(("yes", "no"))


def between(column: str, term: Term) -> Q:
    """A number within a range. What is not known is within no range, and is not left out with one
    either."""
    found = Q(**{f"{column}__isnull": False})
    if term.least is not None:
        found &= Q(**{f"{column}__gte": term.least})
    if term.most is not None:
        found &= Q(**{f"{column}__lte": term.most})
    return found


def exact(column: str) -> Asking:
    """Values of a column to the letter: a star is a star."""
    return lambda _project_id, term: Q(**{f"{column}__in": whole_values(term)})


def recorded(
    column: str,
    known: Callable[[int], Sequence[str]],
    spelt: Callable[[int, str], Iterable[str]] = lambda _project_id, value: (value,),
) -> Asking:
    """Values of a column, and patterns of those that are known of it.

    known: all that was recorded, one query. spelt: the recorded values that somebody may mean.
    """

    def asking(project_id: int, term: Term) -> Q:
        wanted = [each for value in term.values for each in spelt(project_id, value)]
        if term.patterns:
            wanted += [each for each in known(project_id) if matches_any(each, term.patterns)]
        return Q(**{f"{column}__in": wanted})

    return asking


def matches_any(value: str, patterns: Iterable[str]) -> bool:
    """Whether a value is of one of the patterns."""
    return any(is_like(value, pattern) for pattern in patterns)


def whole_values(term: Term) -> tuple[str, ...]:
    """Of a field without patterns a star is a star."""
    return (*term.values, *term.patterns)
