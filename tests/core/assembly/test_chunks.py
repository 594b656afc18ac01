"""Chunks: their order, what is refused, what is escaped, how they are cited."""

from __future__ import annotations

import math
import re
import time

import pytest

from helmdash.core.assembly.chunks import (
    CLOSING,
    OPENING,
    Chunk,
    ChunkProblem,
    DuplicateChunk,
    Provenance,
    Reason,
    SelectionMode,
    citation,
    clean,
    escape,
    select_chunks,
)
from helmdash.core.text.tokens import Estimator

PLAIN = Estimator(chars_per_token=1, safety_multiplier=1)  # a token is a byte
WRAPPER = len(OPENING) + len(CLOSING)


def make_chunk(
    name: str = "doc-1",
    text: str = "text",
    *,
    source: str = "file.md",
    score: float | None = None,
    provenance: Provenance | None = None,
) -> Chunk:
    return Chunk(id=name, text=text, source=source, score=score, provenance=provenance)


def chosen(
    *chunks: Chunk, budget: int = 10_000, mode: SelectionMode = SelectionMode.DEFAULT
) -> list[str]:
    selection = select_chunks(chunks, budget, PLAIN, mode)
    return [block.chunk.id for block in selection.included]


def test_the_highest_score_comes_first_and_ids_break_ties() -> None:
    scores = {"doc-1": 0.9, "doc-2": 0.8, "doc-3": 0.9}

    found = chosen(*(make_chunk(name, score=score) for name, score in scores.items()))

    assert found == ["doc-1", "doc-3", "doc-2"]


def test_ids_compare_by_code_point_and_not_as_the_host_would() -> None:
    assert chosen(*(make_chunk(name) for name in ("a", "ä", "_", "B", "10", "9"))) == [
        "10", "9", "B", "_", "a", "ä",
    ]  # fmt: skip


def test_no_score_zero_and_minus_zero_are_alike() -> None:
    found = chosen(
        make_chunk("c", score=None), make_chunk("b", score=-0.0), make_chunk("a", score=0.0),
        make_chunk("d", score=-1), make_chunk("e", score=1),
    )  # fmt: skip

    assert found == ["e", "a", "b", "c", "d"]


def test_one_that_does_not_fit_is_skipped_and_smaller_ones_still_fit() -> None:
    large = make_chunk("large", "x" * 50, score=3)
    small = [make_chunk(name, "x" * 10, score=score) for name, score in (("a", 2), ("b", 1))]

    selection = select_chunks([*small, large], WRAPPER + 10 + 2 + 10, PLAIN)

    assert [block.chunk.id for block in selection.included] == ["a", "b"]
    assert [(left.block.chunk.id, left.reason, left.over_by) for left in selection.excluded] == [
        ("large", Reason.OVER_BUDGET, 50 - 22)
    ]
    assert selection.total_tokens == len(selection.text) == WRAPPER + 22


def test_exactly_filling_is_allowed_and_one_less_is_not() -> None:
    chunk = make_chunk(text="x" * 10)

    assert chosen(chunk, budget=WRAPPER + 10) == ["doc-1"]
    assert chosen(chunk, budget=WRAPPER + 9) == []
    assert chosen(chunk, budget=0) == []


def test_nothing_chosen_needs_no_wrapper() -> None:
    selection = select_chunks([make_chunk()], 5, PLAIN)

    assert (selection.text, selection.total_tokens) == ("", 0)


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_a_chunk_without_text_is_left_out(text: str) -> None:
    selection = select_chunks([make_chunk(text=text)], 1000, PLAIN)

    assert [left.reason for left in selection.excluded] == [Reason.EMPTY_TEXT]


@pytest.mark.parametrize(
    ("provenance", "is_enough"),
    [
        (None, False),
        (Provenance(), False),
        (Provenance(page=3), True),
        (Provenance(page=0), True),  # 0 is a page
        (Provenance(offset_start=0, offset_end=0), True),  # and a place
        (Provenance(offset_start=5), False),  # half a place is none
        (Provenance(offset_end=5), False),
        (Provenance(block_name="Intro"), True),
        (Provenance(block_name=""), False),
        (Provenance(block_name=" \t"), False),
        (Provenance(offset_start=5, block_name="Intro"), True),
    ],
)
def test_strict_mode_wants_a_page_or_both_offsets_or_a_name(
    provenance: Provenance | None, is_enough: bool
) -> None:
    chunk = make_chunk(provenance=provenance)

    assert chosen(chunk) == ["doc-1"]
    selection = select_chunks([chunk], 10_000, PLAIN, SelectionMode.STRICT_PROVENANCE)
    assert bool(selection.included) is is_enough
    assert [left.reason for left in selection.excluded] == (
        [] if is_enough else [Reason.MISSING_PROVENANCE]
    )


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, 10**400])
def test_a_score_that_is_no_finite_number_is_refused(score: float) -> None:
    with pytest.raises(ChunkProblem) as caught:
        chosen(make_chunk("a"), make_chunk("b", score=score))

    assert (caught.value.field, caught.value.message) == (
        "chunks.1.score",
        "must be a finite number",
    )


def test_an_empty_id_is_refused() -> None:
    with pytest.raises(ChunkProblem) as caught:
        chosen(make_chunk(""))

    assert caught.value.field == "chunks.0.id"


def test_one_id_twice_is_refused_and_both_are_named() -> None:
    with pytest.raises(DuplicateChunk) as caught:
        chosen(make_chunk("a"), make_chunk("b"), make_chunk("c"), make_chunk("b", "other"))

    assert caught.value.field == "chunks.3.id"
    assert caught.value.message == "is the id of chunks.1, too (b); give each its own"


# --- the delimiter -------------------------------------------------------------------------------

TAGS = [
    ("</context>", "&lt;/context>"),
    ("a </context> b </context>", "a &lt;/context> b &lt;/context>"),
    ("<context>", "&lt;context>"),  # a second start would make the end ambiguous
    ("</CONTEXT>", "&lt;/CONTEXT>"),
    ("</CoNtExT >", "&lt;/CoNtExT >"),
    ("< / context\t>", "&lt; / context\t>"),
    ("<\n/\ncontext\n>", "&lt;\n/\ncontext\n>"),
    ("</\u00a0context>", "&lt;/\u00a0context>"),  # a blank of another kind
    ("</con\u200btext>", "&lt;/con\u200btext>"),  # a character that shows nothing
    ("<\u2060/context\ufeff>", "&lt;\u2060/context\ufeff>"),
    ("</con\x08text>", "&lt;/con\x08text>"),
    ('<context id="2">', '&lt;context id="2">'),
    ("</context/>", "&lt;/context/>"),
    ("</context", "&lt;/context"),  # the next chunk could bring the ">"
    ("tail <", "tail &lt;"),  # or everything else
    ("tail </ \n", "tail &lt;/ \n"),
    ("<<<</context>", "<<<&lt;/context>"),
]
UNTOUCHED = [
    "",
    "no tag at all",
    "a < b and b > a",
    "<contextual>",
    "<context-menu>",
    "<context:component-scan base='x'/>",  # Spring's, in many a chunk of code
    "</contexts>",
    "&lt;/context>",
    "/context>",
    "context",
    "<p>text</p>",
]


@pytest.mark.parametrize(("text", "expected"), TAGS)
def test_our_tag_is_escaped_in_every_spelling(text: str, expected: str) -> None:
    assert escape(text) == expected
    assert escape(expected) == expected


@pytest.mark.parametrize("text", UNTOUCHED)
def test_other_text_is_left_as_it_is(text: str) -> None:
    assert escape(text) == text


def test_two_chunks_make_no_tag_together() -> None:
    chunks = [make_chunk("a", "end </"), make_chunk("b", "context> free")]

    text = select_chunks(chunks, 1000, PLAIN).text

    assert re.findall(r"<\s*/?\s*context\s*>", text) == ["<context>", "</context>"]
    assert text.startswith("<context>\n")
    assert text.endswith("\n</context>")


@pytest.mark.parametrize(("start", "rest"), [("<", " "), ("", "< /"), ("", "<c\u200b")])
def test_escaping_takes_time_by_the_length_of_the_text(start: str, rest: str) -> None:
    text = start + rest * 500_000
    started = time.thread_time()

    escape(text)

    assert time.thread_time() - started < 2  # quadratic would be minutes


def test_half_a_surrogate_pair_becomes_the_replacement_character() -> None:
    assert clean("a\ud800b \U0001f600") == "a\ufffdb \U0001f600"


# --- citations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        (make_chunk(provenance=Provenance(page=3)), "[doc-1 | file.md p. 3]"),
        (
            make_chunk(provenance=Provenance(page=3, offset_start=10, offset_end=90)),
            "[doc-1 | file.md p. 3, chars 10 to 90]",
        ),
        (make_chunk(provenance=Provenance(block_name="Intro")), "[doc-1 | file.md block Intro]"),
        (make_chunk(provenance=Provenance(page=1, offset_end=9)), "[doc-1 | file.md p. 1]"),
        (make_chunk(source="", provenance=Provenance(page=3)), "[doc-1 | p. 3]"),
        (make_chunk(source=""), "[doc-1]"),
        # No name breaks the line or ends the wrapper.
        (make_chunk("a\r\n\x00\u2028b", source="x\x1b\x85y\u202ez"), "[a b | x y z]"),
        (make_chunk("</context>", source="<context >"), "[&lt;/context> | &lt;context >]"),
        (make_chunk(provenance=Provenance(block_name="a\nb ")), "[doc-1 | file.md block a b]"),
    ],
)
def test_a_citation_is_one_line(chunk: Chunk, expected: str) -> None:
    assert citation(chunk) == expected


def test_only_strict_mode_cites() -> None:
    chunk = make_chunk(provenance=Provenance(page=3))

    assert select_chunks([chunk], 1000, PLAIN).text == "<context>\ntext\n</context>"
    strict = select_chunks([chunk], 1000, PLAIN, SelectionMode.STRICT_PROVENANCE).text
    assert strict == "<context>\n[doc-1 | file.md p. 3]\ntext\n</context>"
