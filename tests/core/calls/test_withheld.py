"""A provider's words about a failure: figures stay, quoted prompts do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helmdash.core.calls.withheld import NOT_KEPT, WITHHELD, kept_code, kept_words, without_words
from tests.factories import make_capture

# What providers say, and what is kept of it.
SAID = [
    (
        ("This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "10,240 tokens. Please reduce the length of the messages."),
        ("This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "10,240 tokens. Please reduce the length of the messages"),
    ),
    ("prompt is too long: 210000 tokens > 200000 maximum", ("prompt is too long: 210000 tokens > "
     "200000 maximum")),
    (
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "request (5000 tokens) exceeds the available context size (4096 tokens",
    ),
    ("Invalid value: 'my diagnosis is cancer'. n_ctx = 4096 tokens", "n_ctx = 4096 tokens"),
    ("Input was flagged: 'how to cook 5 meals'", ""),
    ("My PIN is 1234 and my card 4111111111111111 tokens", ""),
    ("Invalid 'messages[0].content': 'Alice, 42, of Bern'", ""),
    ("<html>502 Bad Gateway</html>", ""),
]  # fmt: skip


@pytest.mark.parametrize(("said", "kept"), SAID)
def test_figures_stay_and_quotations_go(said: str, kept: str) -> None:
    assert kept_words(said) == (f"{NOT_KEPT} Its figures: {kept}." if kept else NOT_KEPT)


def test_nothing_said_is_nothing() -> None:
    assert kept_words(None) is None
    assert kept_words(" ") is None


@given(st.text(alphabet="bcdfghjklpqvxz", min_size=4, max_size=30), st.integers(0, 10**12))
def test_no_foreign_word_stays(word: str, number: int) -> None:
    for said in (
        f"maximum context length is 8192 tokens, and you said: {word} {number}",
        f"{word}",
        f"error in '{word}': {word} tokens {word} limit {number}{word}",
        f"{number} {word} {number}",
    ):
        assert word not in (kept_words(said) or "")


def test_codes_and_statuses_stay_and_sentences_in_their_place_go() -> None:
    plain = make_capture(
        error_code="context_length_exceeded", finish_reason="MAX_TOKENS", error_is_own=False
    )
    odd = make_capture(
        error_code="you said: secret", finish_reason="because you said secret", error_is_own=False
    )

    assert without_words(plain) == plain
    assert (without_words(odd).error_code, without_words(odd).finish_reason) == (
        WITHHELD, WITHHELD,
    )  # fmt: skip


# Codes, what stands in the prompt beside them, and whether they stay.
CODES = [
    # words that vendors are known to say, whatever the prompt is about
    ("rate_limit_exceeded", "What does rate_limit_exceeded mean?", True),
    ("RateLimitError", "", True),
    ("RESOURCE_EXHAUSTED", "", True),
    ("timeout", "The timeout is too short.", True),
    ("418", "418", True),
    ("HTTP_429", "", True),
    # made like a code, and nothing of it is in the prompt
    ("unsupported_country_region_territory", "Hello.", True),
    ("image-parse-failed", "Hello.", True),
    ("ModelNotReadyException", "Hello.", True),
    # one word alone may be a word of the prompt
    ("leukaemia", "Is it leukaemia?", False),
    ("Leukaemia", "", False),
    ("Alice", "", False),
    ("a.b@c.example", "", False),
    # of a prompt that is known
    ("left_leg", "My left_leg hurts.", False),
    ("invalid_leukaemia", "Is it Leukaemia?", False),
    ("LeukaemiaFound", "Is it leukaemia?", False),
    ("invalid-name-of-alice", "I am ALICE.", False),
    ("you said: secret", "", False),
    ("x_" * 60, "", False),
]


@pytest.mark.parametrize(("code", "prompt", "stays"), CODES)
def test_a_code_stays_if_it_is_known_or_made_like_one_and_not_of_the_prompt(
    code: str, prompt: str, stays: bool
) -> None:
    messages = ({"role": "user", "content": prompt},)
    refused = make_capture(error_code=code, error_is_own=False, messages=messages)

    assert kept_code(code, [prompt]) == (code if stays else WITHHELD)
    assert without_words(refused).error_code == (code if stays else WITHHELD)


@given(st.text(alphabet="bcdfghjklpqvxz", min_size=3, max_size=30))
def test_no_word_of_the_prompt_is_kept_as_a_code(word: str) -> None:
    for code in (word, word.title(), f"invalid_{word}", f"{word}-not-found", f"Bad{word.title()}"):
        assert kept_code(code, [f"I said {word}."]) == WITHHELD
    assert kept_code(word, []) == WITHHELD


def test_our_own_sentences_stay() -> None:
    own = make_capture(
        error_message="Upstream openai closed the connection.",
        error_code="misconfigured",
        error_is_own=True,
    )
    attempts = (
        {"number": 1, "status": 429, "message": "slow down, secret", "waited_ms": 5},
        {"number": 2, "error": "dns", "message": "Upstream x has a host name that leads nowhere."},
        {"number": 3, "error": "context_overflow", "message": "limit is 5 tokens: secret"},
        {"number": 4, "error": "redirected", "message": "Upstream x redirects to secret"},
        {"number": 5, "status": 200},
    )

    assert without_words(own) == own
    kept = without_words(make_capture(attempts=attempts, error_is_own=False)).attempts
    assert "secret" not in str(kept)
    assert (kept[1], kept[4]) == (attempts[1], attempts[4])
    assert (kept[0]["status"], kept[0]["waited_ms"]) == (429, 5)
    assert "limit is 5 tokens" in str(kept[2]["message"])


@pytest.mark.parametrize(
    ("message", "told", "is_kept"),
    [
        ("upstream said no", None, True),  # its author's own choice of words
        ("upstream said no", "My diagnosis is flu.", True),
        ("Invalid value: 'my diagnosis is flu'", "Hello! My diagnosis\nis flu.", False),
        ("upstream said no", "x" * 300_000, False),  # too long to look through
    ],
)
def test_a_report_keeps_its_words_unless_they_quote_its_texts(
    message: str, told: str | None, is_kept: bool
) -> None:
    messages = ({"role": "user", "content": [{"type": "text", "text": told}]},) if told else None
    report = make_capture(error_message=message, messages=messages)

    assert (without_words(report).error_message == message) is is_kept
