"""Own patterns: what is taken is fast on every text, what is not says what to write instead."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.text.own_patterns import (
    MOST_CHARS,
    MOST_PATTERNS,
    BadPattern,
    compile_pattern,
    pattern_problems,
)
from helmdash.core.text.redaction import NOT_CHECKED, OWN_MASK, Masker, redact_text

TAKEN = [
    (r"EMP-\d+", "see EMP-00123.", "see [masked]."),
    (r"(?i)project bluebird", "Project BlueBird is late", "[masked] is late"),
    (r"\b[A-Z]{2}\d{6,8}\b", "AB1234567 xAB1234567", "[masked] xAB1234567"),
    (r"\d{3}-\d{2}-\d{4}", "SSN 078-05-1120", "SSN [masked]"),
    (r"\bDE\d{2}(?:\s?\d{4}){4}\s?\d{2}\b", "to DE89 3704 0044 0532 0130 00.", "to [masked]."),
    (r"https?://internal\.\S+", "at http://internal.corp/x now", "at [masked] now"),
    (r"customer:\s*\w+", "customer:  Ada, again", "[masked], again"),
    (r"ACME (?:Ltd|Inc)", "ACME Inc and ACME GmbH", "[masked] and ACME GmbH"),
    (r".{0,20}confidential", "this is confidential", "[masked]"),
    (r"(?:a|b)+c", "xabac", "x[masked]"),
    (r"[\]^-]{2}x", "^-x", "[masked]"),
    (r"Straße \d", "Straße 5", "[masked]"),
]
REFUSED = [
    (r"(a+)+b", "too many ways"),
    (r"(a|a)*b", "too many ways"),
    (r"(a|aa)+b", "too many ways"),
    (r"(x+x+)+y", "too many ways"),
    (r"(.*)(.*)(.*)x", "too many ways"),
    (r".*secret", "too many ways"),
    (r"\d+\d+x", "too many ways"),
    (r"\s*\s*x", "too many ways"),
    (r"(?:\w+,?)+x", "too many ways"),
    (r"(?:[a-z]+ ?){1,9}x", "too many ways"),
    (r"(?i)(a|A)+b", "too many ways"),
    (r"a?" * 30 + "a" * 30, "too many ways"),
    ("a*", "nothing at all"),
    (r"\b", "nothing at all"),
    ("(?:|a)", "nothing at all"),
    ("", "is empty"),
    ("  ", "is empty"),
    ("^a", r"use \\b"),
    ("a$", r"use \\b"),
    ("(?=a)b", "look around"),
    ("(?P<n>a)b", "look around"),
    ("a(?i)b", "look around"),
    (r"(a)\1", r"may not have \\1"),
    (r"\Aa", r"may not have \\A"),
    ("[a", "never closed"),
    ("(a", "never closed"),
    ("a)", "too many"),
    ("a**", "repeat"),
    ("a*?b", "repeat"),
    ("*a", "repeats nothing"),
    ("a{,5}", "counts nothing"),
    ("a{5,2}", "more to less"),
    ("[z-a]", "cannot be read"),
    ("[[a]", "within a class"),
    ("[a--b]", "same sign twice"),
    ("a\\", r"ends in a"),
    ("a\nb", "printable"),
    ("((((((a))))))", "too deep"),
    ("a" * (MOST_CHARS + 1), "more than"),
]


def mask(text: str, *patterns: str) -> str:
    return Masker(patterns, seconds=time.thread_time).text(text)


@pytest.mark.parametrize(("pattern", "text", "masked"), TAKEN)
def test_a_pattern_masks_what_it_says(pattern: str, text: str, masked: str) -> None:
    assert pattern_problems([pattern]) == ()
    assert mask(text, pattern) == masked


@pytest.mark.parametrize(("pattern", "words"), REFUSED)
def test_a_pattern_that_may_be_slow_or_is_none_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(BadPattern, match=words):
        compile_pattern(pattern)


def test_too_many_patterns_are_refused() -> None:
    assert len(pattern_problems(["a"] * (MOST_PATTERNS + 1))) == 1


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "b",
                "[ab]",
                ".",
                r"\w",
                "(?:",
                "(",
                ")",
                "|",
                "*",
                "+",
                "?",
                "{2,9}",
                "{3}",
                r"\b",
            ]
        ),
        max_size=12,
    ).map("".join)
)
def test_whatever_is_taken_is_fast_on_a_hostile_text(pattern: str) -> None:
    try:
        found = compile_pattern(pattern)
    except BadPattern:
        return
    for text in ("a" * 300, "ab" * 150, "a" * 299 + "!", " a" * 150):
        began = time.thread_time()
        found.search(text + "\n")
        # An exponential one takes hours; what is taken needs some milliseconds at most.
        assert time.thread_time() - began < 1.0, pattern


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab1 -\n", max_size=5000), st.sampled_from([r"a\d+", "1-1", r"\bab+\b"]))
def test_steps_mask_what_the_whole_would(text: str, pattern: str) -> None:
    assert mask(text, pattern) == re.sub(pattern, OWN_MASK, text)


def test_a_match_across_two_steps_is_found() -> None:
    for before in range(1010, 1040):
        text = "x" * before + " EMP-" + "7" * 30 + " and"
        assert mask(text, r"EMP-\d+\b") == "x" * before + f" {OWN_MASK} and"


def test_what_takes_too_long_is_not_kept() -> None:
    ticks = iter(range(1000))
    masker = Masker([r"EMP-\d+"], seconds=lambda: next(ticks) * 0.06)

    masked = masker.text("EMP-1 " + "x" * 10_000 + " EMP-2")

    assert masked.startswith(OWN_MASK)
    assert masked.endswith(NOT_CHECKED)
    assert "EMP" not in masked
    assert masker.text("EMP-3, of the same call") == NOT_CHECKED


def test_long_prose_is_fast() -> None:
    text = "The quick brown fox jumps over the lazy dog. EMP-12. " * 20_000  # a million characters

    began = time.thread_time()
    masked = mask(text, r"EMP-\d+", r"(?i)\bproject bluebird\b")

    assert masked.count(OWN_MASK) == 20_000
    assert NOT_CHECKED not in masked
    assert time.thread_time() - began < 5


@pytest.mark.parametrize("piece", ["-eyJ", "-eyJaaaaaaaa"])
def test_what_looks_like_many_tokens_is_fast(piece: str) -> None:
    began = time.thread_time()
    redact_text(piece * (50_000 // len(piece)))
    # Some milliseconds; 0.5 and 2.3 s where each of them reads the rest of the text.
    assert time.thread_time() - began < 0.2


def test_a_token_is_masked_wherever_it_begins_in_a_word() -> None:
    token = "eyJhbGciOiJI.eyJzdWIiOi-1.c2ln-_"
    assert (
        redact_text(f"{token} id-{token}, éa-eyJ-{token}.x") == "[token] id-[token], éa-[token].x"
    )
    for none in ("eyJhbGc.eyJzdWIiOi.c", "eyJhbGciOiJI.eyJz.c", "a_eyJhbGciOiJI.eyJzdWIiOi.c"):
        assert redact_text(none) == none


def test_values_keep_their_shape() -> None:
    masker = Masker(["b+"], seconds=time.perf_counter)

    assert masker.value({"b": ["abb", 1, None, {"x": "b"}]}) == {
        "b": [f"a{OWN_MASK}", 1, None, {"x": OWN_MASK}]
    }
