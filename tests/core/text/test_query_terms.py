"""What people write above lists, and what it is read as."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helmdash.core.text.query_terms import (
    MOST_CHARS,
    BadQuery,
    Field,
    Kind,
    Query,
    Term,
    is_like,
    parse_query,
    quoted,
    term_text,
    written,
)

FIELDS = (
    Field(
        name="level",
        kind=Kind.WORD,
        meaning="",
        words={"critical": ("critical",), "caution": ("caution",), "full": ("critical", "caution")},
    ),
    Field(name="model", kind=Kind.TEXT, meaning=""),
    Field(name="latency", kind=Kind.DURATION, meaning=""),
    Field(name="prompt", kind=Kind.COUNT, meaning=""),
)


def one(text: str) -> Term:
    (term,) = parse_query(text, FIELDS).terms
    assert term.text == text
    return term


@pytest.mark.parametrize(
    ("text", "values", "patterns", "is_negated"),
    [
        ("level:CRITICAL", ("critical",), (), False),
        ("-level:full", ("critical", "caution"), (), True),
        ("level:caution,critical", ("caution", "critical"), (), False),
        ("LEVEL:caution", ("caution",), (), False),
        ("model:openrouter/*", (), ("openrouter/*",), False),
        ("model:some/free-model:free", ("some/free-model:free",), (), False),
        ('model:"a b, \\"c\\" *"', ('a b, "c" *',), (), False),
        ("-model:a,b*", ("a",), ("b*",), True),
    ],
)
def test_words_and_texts(
    text: str, values: tuple[str, ...], patterns: tuple[str, ...], is_negated: bool
) -> None:
    found = one(text)

    assert (found.values, found.patterns, found.is_negated) == (values, patterns, is_negated)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("latency:>2s", 2_001, None),
        ("latency:>=800", 800, None),
        ("latency:<1.5m", None, 89_999),
        ("latency:<=2h", None, 7_200_000),
        ("latency:2s..10s", 2_000, 10_000),
        ("latency:..2s", None, 2_000),
        ("latency:2s..", 2_000, None),
        ("prompt:>100k", 100_001, None),
        ("prompt:2M", 2_000_000, 2_000_000),
        ("prompt:=0", 0, 0),
        # No database takes more.
        ("prompt:>999999999999999m", 2**53 + 1, None),
    ],
)
def test_numbers(text: str, least: int | None, most: int | None) -> None:
    assert (one(text).least, one(text).most) == (least, most)


def test_words_without_a_field_are_searched_for() -> None:
    found = parse_query('  abc level:caution "x:y  z"\t"a\\"b" ', FIELDS)

    assert found.words == 'abc x:y  z a"b'
    assert [term.single for term in found.terms] == ["caution"]
    assert parse_query("  ", FIELDS) == Query()
    assert parse_query('"OR" or', FIELDS).words == "OR or"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "lvl:critical",
            "lvl: there is no such field. Did you mean level? Fields are level, model",
        ),
        ("conv:1", 'to search for text with a colon, write "conv:1"'),
        ("level:crit", "crit is not known of level. Did you mean critical? Known are critical, c"),
        ("level:", "say what is wanted of level, such as level:critical"),
        ("latency:soon", "soon is no duration; write 800ms, >2s"),
        ("prompt:2s", "2s is no count; write 429, >100k"),
        ("latency:5s..2s", "the smaller one first"),
        ("latency:..", "the smaller one first"),
        ("model:a,,b", "write one value, or up to 20"),
        ("model:*a*b*c*d*", "at most 4 stars"),
        ('"open', "the quote has no end"),
        ('model:"a"b', "the quote has no end, or something stands behind it"),
        ("- x", "a minus stands alone"),
        ("-x", 'only terms can be left out; to search for it, write "-x"'),
        ("level:caution OR level:critical", "commas mean either: model:a,b"),
        ("a AND b", "terms hold all at once"),
        ("NOT level:caution", "a minus leaves out: -model:a"),
        ("prompt:1 " * 21, "at most 20 terms, these are 21"),
        ("x" * (MOST_CHARS + 1), "at most 500 characters"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_may_stand_there(text: str, said: str) -> None:
    with pytest.raises(BadQuery) as raised:
        parse_query(text, FIELDS)

    assert said in str(raised.value)


@given(st.text(max_size=60))
def test_any_text_is_a_query_or_told_why_not_and_written_means_the_same(text: str) -> None:
    with suppress(BadQuery):
        found = parse_query(text, FIELDS)
        assert parse_query(written(found.terms), FIELDS).terms == found.terms


@given(st.text(min_size=1, max_size=60))
def test_any_value_can_be_asked_for(value: str) -> None:
    assert parse_query(term_text("model", value), FIELDS).terms[0].single == value
    assert parse_query(quoted(value), FIELDS).words == value


def test_stars_are_any_text() -> None:
    assert is_like("OpenRouter/meta/x", "openrouter/*")
    assert is_like("a", "*a*")
    assert is_like("a\nb", "a*b")
    assert not is_like("xa", "a*")
    assert not is_like("a.b", "a?b")


@given(st.text("aAbßİ.*", max_size=8), st.text("aAbßİ.\n", max_size=10))
def test_a_pattern_means_what_the_regex_of_it_means(pattern: str, value: str) -> None:
    regex = ".*".join(map(re.escape, pattern.lower().split("*")))

    assert is_like(value, pattern) == bool(re.fullmatch(regex, value.lower(), re.DOTALL))


def test_many_stars_take_no_longer() -> None:
    """A regex goes back some 10^16 times here; whoever waits for it never sees the test end."""
    assert not is_like("a" * 250, "*a" * 10 + "*b")
    assert is_like("a" * 250, "*a" * 125 + "*")
