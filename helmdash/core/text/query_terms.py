"""Queries as people write them above a list: `level:critical -cause:timeout latency:>2s "an id"`.

A query is terms with blanks between. A term is a field, a colon and what is wanted of it; a minus
before it leaves that out. What fields there are, and of what kind, is the list's (`Field`). Values
with blanks, commas or colons stand in double quotes, where `\\` keeps the next sign. Words without
a field are searched for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

# An address has room for it, and a database for its conditions.
MOST_CHARS: Final = 500
MOST_TERMS: Final = 20
# Of one term, and stars of one value: each star may try every place of the text again.
_MOST_VALUES: Final = 20
_MOST_STARS: Final = 4
# What a database takes, and no list has more of.
_LARGEST: Final = 2**53
_SHOWN_VALUES: Final = 24

# What other query languages have: as a word to search for it would find nothing, and say no more.
_OPERATORS: Final[Mapping[str, str]] = {
    "AND": "terms hold all at once; leave it out",
    "OR": "commas mean either: model:a,b",
    "NOT": "a minus leaves out: -model:a",
}

_TOKEN: Final = re.compile(
    r"(?P<minus>-)?(?:(?P<field>[A-Za-z_]+):)?(?P<value>\"(?:[^\"\\]|\\.)*\"(?=\s|$)|\S*)"
)
_NUMBER: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([a-z]*)", re.IGNORECASE)
_COMPARED: Final = re.compile(r"(>=|<=|>|<|=)?(.+)")
_PLAIN: Final = re.compile(r"[^\s\",*\\]+")


class BadQuery(ValueError):
    """A query that cannot be read; the message names the part, and what may stand there."""


class Kind(StrEnum):
    """What may stand behind a field's colon."""

    WORD = "word"
    TEXT = "text"
    DURATION = "duration"
    COUNT = "count"


_UNITS: Final[Mapping[Kind, Mapping[str, int]]] = {
    # Milliseconds; a number alone is of these, as in the API.
    Kind.DURATION: {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000},
    Kind.COUNT: {"": 1, "k": 1_000, "m": 1_000_000},
}
_HOW: Final[Mapping[Kind, str]] = {
    Kind.DURATION: "write 800ms, >2s, <=1.5m or 2s..10s",
    Kind.COUNT: "write 429, >100k, <=2000 or 10k..50k",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Something that a list can be asked for.

    words: of a WORD, all that may be asked for, each with the values that it stands for. meaning:
    in a few words, for whoever looks for a field.
    """

    name: str
    kind: Kind
    meaning: str
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One part of a query. text: as it was written.

    given: the words as they were written. values: one of these is wanted; patterns: or one like
    these, where `*` is any text. least, most: of a number, both included; milliseconds of a
    duration.
    """

    field: str
    text: str
    is_negated: bool = False
    given: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None

    @property
    def single(self) -> str | None:
        """The one word that it asks for; None where it asks for anything else."""
        is_plain = len(self.given) == 1 and not (self.is_negated or self.patterns)
        return self.given[0] if is_plain else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What was asked for: terms, which all hold, and words to search for ("": none)."""

    terms: tuple[Term, ...] = ()
    words: str = ""


def parse_query(text: str, fields: Sequence[Field]) -> Query:
    """A query as terms. Raises BadQuery.

    >>> latency = Field(name="latency", kind=Kind.DURATION, meaning="")
    >>> parse_query("-latency:>2s abc", [latency]).terms[0].least
    2001
    """
    if len(text) > MOST_CHARS:
        raise BadQuery(f"at most {MOST_CHARS} characters, these are {len(text)}")
    known = {each.name: each for each in fields}
    terms: list[Term] = []
    words: list[str] = []
    for found in _tokens(text):
        if found["field"] is None:
            words.append(_word(found))
        else:
            terms.append(_term(found, known))
    if len(terms) > MOST_TERMS:
        raise BadQuery(f"at most {MOST_TERMS} terms, these are {len(terms)}")
    return Query(terms=tuple(terms), words=" ".join(words))


def written(terms: Iterable[Term]) -> str:
    """Terms as the text that means them."""
    return " ".join(term.text for term in terms)


def term_text(name: str, value: str) -> str:
    """A term that asks for exactly this value.

    >>> term_text("pack", "my pack")
    'pack:"my pack"'
    """
    return f"{name}:{value if _is_plain(value) else quoted(value)}"


def any_of(name: str, values: Sequence[str]) -> str:
    """A term that asks for any of these values, exactly; "" where one term cannot say it: for none,
    too many, or several of which one needs quotes.

    >>> any_of("spelt", ["gpt-4o", "openai/gpt-4o"])
    'spelt:gpt-4o,openai/gpt-4o'
    """
    if len(values) == 1:
        return term_text(name, values[0])
    if not 0 < len(values) <= _MOST_VALUES or not all(map(_is_plain, values)):
        return ""
    return f"{name}:{','.join(values)}"


def quoted(value: str) -> str:
    """A value in quotes, whatever is in it."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def is_like(value: str, pattern: str) -> bool:
    """Whether a value is of a pattern, whatever its case; `*` is any text, an empty one too.

    >>> is_like("OpenRouter/x", "openrouter/*")
    True
    """
    # No regex: with several stars its time grows by the length to the power of their number.
    value = value.lower()
    first, *middle = pattern.lower().split("*")
    if not middle:
        return value == first
    last = middle.pop()
    at, end = len(first), len(value) - len(last)
    if at > end or not value.startswith(first) or not value.endswith(last):
        return False
    for part in middle:
        # The first place is as good as any: it leaves the most for the parts behind it.
        found = value.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _tokens(text: str) -> Iterable[re.Match[str]]:
    at, end = 0, len(text)
    while at < end:
        if text[at].isspace():
            at += 1
            continue
        found = _TOKEN.match(text, at)
        if found is None or found.end() == at:
            raise BadQuery(f"{text[at:]} cannot be read")
        if found["value"].startswith('"') and not _is_quoted(found["value"]):
            raise BadQuery(f"{found[0]}: the quote has no end, or something stands behind it")
        yield found
        at = found.end()


def _word(found: re.Match[str]) -> str:
    value = found["value"]
    if found["minus"] and not value:
        raise BadQuery("a minus stands alone; write it before a term: -level:healthy")
    if found["minus"]:
        raise BadQuery(
            f'{found[0]}: only terms can be left out; to search for it, write "{found[0]}"'
        )
    if _is_quoted(value):
        return _unquoted(value)
    if value in _OPERATORS:
        raise BadQuery(f'{value}: {_OPERATORS[value]}. To search for it, write "{value}"')
    if ":" in value:
        raise BadQuery(f'{value}: to search for text with a colon, write "{value}"')
    return value


def _term(found: re.Match[str], known: Mapping[str, Field]) -> Term:
    name, value, text = found["field"].lower(), found["value"], found[0]
    asked = known.get(name)
    if asked is None:
        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise BadQuery(
            f"{found['field']}: there is no such field.{hint} Fields are {', '.join(known)}; to "
            f"search for text with a colon, write {quoted(text.removeprefix('-'))}"
        )
    if value in ("", '""'):
        raise BadQuery(f"{text}: say what is wanted of {name}, such as {_example(asked)}")
    is_negated = found["minus"] is not None
    if asked.kind in _UNITS:
        least, most = _range(text, value, asked)
        return Term(field=name, text=text, is_negated=is_negated, least=least, most=most)
    values = [_unquoted(value)] if _is_quoted(value) else value.split(",")
    if len(values) > _MOST_VALUES or not all(values):
        raise BadQuery(f"{text}: write one value, or up to {_MOST_VALUES} with commas between")
    if asked.kind is Kind.WORD:
        words = tuple(each.lower() for each in values)
        meant = _of_words(text, words, asked)
        return Term(field=name, text=text, is_negated=is_negated, given=words, values=meant)
    patterns = () if _is_quoted(value) else tuple(each for each in values if "*" in each)
    if any(each.count("*") > _MOST_STARS for each in patterns):
        raise BadQuery(f"{text}: at most {_MOST_STARS} stars")
    return Term(
        field=name,
        text=text,
        is_negated=is_negated,
        given=tuple(values),
        values=tuple(each for each in values if each not in patterns),
        patterns=patterns,
    )


def _of_words(text: str, given: Iterable[str], asked: Field) -> tuple[str, ...]:
    values: dict[str, None] = {}
    for each in given:
        meant = asked.words.get(each)
        if meant is None:
            near = get_close_matches(each, asked.words, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            shown = ", ".join([*asked.words][:_SHOWN_VALUES])
            raise BadQuery(f"{text}: {each} is not known of {asked.name}.{hint} Known are {shown}")
        values |= dict.fromkeys(meant)
    return tuple(values)


def _range(text: str, value: str, asked: Field) -> tuple[int | None, int | None]:
    first, dots, last = value.partition("..")
    if dots:
        least = _number(text, first, asked) if first else None
        most = _number(text, last, asked) if last else None
        is_empty = least is None and most is None
        if is_empty or (least is not None and most is not None and least > most):
            raise BadQuery(f"{text}: {_HOW[asked.kind]}, the smaller one first")
        return least, most
    found = _COMPARED.fullmatch(value)
    sign, rest = (found[1], found[2]) if found else (None, value)
    number = _number(text, rest, asked)
    if sign in (">", ">="):
        return number + (sign == ">"), None
    if sign in ("<", "<="):
        return None, number - (sign == "<")
    return number, number


def _number(text: str, value: str, asked: Field) -> int:
    found = _NUMBER.fullmatch(value)
    unit = None if found is None else _UNITS[asked.kind].get(found[2].lower())
    if found is None or unit is None:
        raise BadQuery(f"{text}: {value} is no {asked.kind}; {_HOW[asked.kind]}")
    return min(round(float(found[1]) * unit), _LARGEST)


def _example(asked: Field) -> str:
    if asked.kind in _UNITS:
        return f"{asked.name}:{'>2s' if asked.kind is Kind.DURATION else '>100k'}"
    return f"{asked.name}:{next(iter(asked.words), 'openrouter/*')}"


def _is_quoted(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1] == '"' and _TOKEN.fullmatch(value) is not None


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL)


def _is_plain(value: str) -> bool:
    """Whether it needs no quotes to be read as it is; one with a star would be a pattern."""
    return _PLAIN.fullmatch(value) is not None
