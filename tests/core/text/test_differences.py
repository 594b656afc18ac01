"""Differences of texts: what is told makes up both of them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helmdash.core.text.differences import MOST_PIECES, Change, differences

# Few letters, so that texts have something in common.
texts = st.text(alphabet="abö \n", max_size=60)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=texts, after=texts)
def test_the_parts_make_up_both_texts(before: str, after: str) -> None:
    parts = differences(before, after)

    assert "".join(part.text for part in parts if part.change != Change.NEW) == before
    assert "".join(part.text for part in parts if part.change != Change.GONE) == after
    assert all(part.text for part in parts)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("", "", []),
        ("one two", "one two", ["same one two"]),
        ("one two three", "one three", ["same one ", "gone two ", "same three"]),
        ("one three", "one two three", ["same one ", "new two ", "same three"]),
        ("one", "", ["gone one"]),
        # Too many words: whole lines.
        (
            "a b\n" * MOST_PIECES,
            "a b\n" * (MOST_PIECES - 1) + "a c\n",
            ["same " + "a b\n" * (MOST_PIECES - 1), "gone a b\n", "new a c\n"],
        ),
        # Too many lines, too: the whole.
        ("a\n" * 9_999, "b", ["gone " + "a\n" * 9_999, "new b"]),
    ],
)
def test_words_are_told_and_beyond_a_size_whole_lines(
    before: str, after: str, told: list[str]
) -> None:
    assert [f"{part.change} {part.text}" for part in differences(before, after)] == told
