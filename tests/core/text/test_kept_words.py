"""What is remembered of texts, for the next one that is alike: not the texts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from helmdash.core.calls.finish import FinishReason, normalise_finish_reason
from helmdash.core.ranking.history_index import words_of_intent
from helmdash.core.text.words import all_words, words_of
from helmdash.operations.planning.arguments import check_args

# Of each shape: more than would be missed where some are kept, and few, for tracing is slow.
_TEXTS, _LONG = 8, 200_000


def _schema(text: str) -> object:
    return check_args({"type": "object", "title": text}, {})


@pytest.mark.parametrize(
    "read", [words_of, all_words, words_of_intent, normalise_finish_reason, _schema]
)
@pytest.mark.parametrize("part", ["abcdefghij", "abcdefghi ", "{n}abcde "])
def test_long_texts_that_come_once_leave_nothing_behind(
    read: Callable[[str], object], part: str
) -> None:
    read("warm up")
    tracemalloc.start()
    try:
        for number in range(_TEXTS):
            read(f"{number:05} " + part.format(n=number) * (_LONG // 10))
            read(f"{number:05}" + part.format(n=number) * (_LONG // 10))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # One of them is 200 kB.
    assert held < 400_000


def test_a_long_word_is_read_by_how_it_begins() -> None:
    long = "blog" * 1_000
    assert words_of(f"publish {long} now " * 2) == ["publish", long[:64], "now"] * 2
    assert normalise_finish_reason(" stop" + " " * 1_000) is FinishReason.STOP
    assert normalise_finish_reason("x" * 100_000) is FinishReason.OTHER
