"""Reasoning out of a reply: every form of block, every vendor's markers, and never too much."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.text.reasoning import strip_reasoning

PLAN = '{"steps":[{"order":1}]}'

ANALYSIS = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
FINAL = f"<|channel|>final<|message|>{PLAN}<|return|>"
PREAMBLE = "<|channel|>commentary<|message|>I will look.<|end|>"
TOOL_CALL = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>" + PLAN + "<|call|>"
SOLUTION = f"<|begin_of_solution|>{PLAN}<|end_of_solution|>"


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        # nothing to do
        ("", ""),
        ("think", "think"),
        (PLAN, PLAN),
        ("An answer.\n\n\n\nWith gaps.", "An answer.\n\n\n\nWith gaps."),
        ("<TheReasoning>kept</TheReasoning> yes", "<TheReasoning>kept</TheReasoning> yes"),
        ("<thinker>kept</thinker>", "<thinker>kept</thinker>"),
        # closed
        (f"<think>hm</think>{PLAN}", PLAN),
        (f"<think>\nhm\nhm\n</think>\n\n{PLAN}\n", PLAN),
        (f"<THINK>hm</Think>{PLAN}", PLAN),
        (f'<think budget="10">hm</think >{PLAN}', PLAN),
        (f"<reasoning>hm</reasoning>{PLAN}", PLAN),
        (f"[REASONING]hm[/REASONING]{PLAN}", PLAN),
        (f"<thinking>hm</thinking>{PLAN}", PLAN),
        (f"<thought>hm</thought>{PLAN}", PLAN),
        (f"<scratchpad>hm</scratchpad>{PLAN}", PLAN),
        ("<think>a</think>one<think>b</think> two<reasoning>c</reasoning>", "one two"),
        (f'<think>An example: {{"steps": []}}</think>{PLAN}', PLAN),
        (f"<think>```json\n{{}}\n```</think>\n```json\n{PLAN}\n```", f"```json\n{PLAN}\n```"),
        ("<think>only thoughts</think>", ""),
        ("<think></think>", ""),
        ("<think/>done", "done"),
        # another name of the same thing closes too
        (f"<think>hm</thinking>{PLAN}", PLAN),
        (f"<reasoning>hm</think>{PLAN}", PLAN),
        # closed without having been opened: the template wrote the opening
        (f"hm, hm</think>{PLAN}", PLAN),
        (f'Try {{"a":1}} first.\n</think>\n{PLAN}', PLAN),
        (f"first</think>second</think>{PLAN}", PLAN),
        ("hm, and nothing more</think>", ""),
        # never closed: nothing after it is an answer
        ("<think>hm, hm", ""),
        ("The answer. <think>or is it", "The answer."),
        (f"<think>hm {PLAN}", ""),
        # nested
        (f"<think>a<think>b</think>c</think>{PLAN}", PLAN),
        (f"before <think>a<reasoning>b</reasoning>c</think> {PLAN}", f"before  {PLAN}"),
        (f"<think>a<think>b<think>c</think></think></think>{PLAN}", PLAN),
        # thoughts that mention a tag
        (f"<think>they wrote <think> here</think>{PLAN}", PLAN),
        (f"<think>a <reasoning> b</think>{PLAN}", PLAN),
        ("<think>a <think> b</think>one <think>two", "one"),
        # Kimi, OpenThinker, Cohere, Magistral, Seed, Gemma
        (f"◁think▷hm◁/think▷{PLAN}", PLAN),
        (f"<|begin_of_thought|>hm<|end_of_thought|>\n{SOLUTION}", PLAN),
        (f"<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>{PLAN}<|END_RESPONSE|>", PLAN),
        (f"[THINK]hm[/THINK]{PLAN}", PLAN),
        (f"<seed:think>hm</seed:think>{PLAN}", PLAN),
        (f"<|channel>thought\nhm<channel|>{PLAN}", PLAN),
        # gpt-oss: the final channel; or, where there is none, its tool call
        (ANALYSIS + FINAL, PLAN),
        (ANALYSIS + TOOL_CALL, PLAN),
        (PREAMBLE + FINAL, PLAN),
        ("<|channel|>analysis<|message|>hm, and cut", ""),
        (f"<|channel|>final<|constrain|>json<|message|>{PLAN}", PLAN),
        (f"analysisWe need a plan.assistantfinal{PLAN}", PLAN),
        ("analysis of the market: it grows", "analysis of the market: it grows"),
        # a heading, not a marker
        ("[Reasoning]\nIt rains.\n[Answer]\nNo.", "[Reasoning]\nIt rains.\n[Answer]\nNo."),
        # blank lines where a block was
        ("one\n\n<think>hm</think>\n\n\ntwo", "one\n\ntwo"),
        # tags as data
        ('{"tag": "<think>x</think>"}', '{"tag": "<think>x</think>"}'),
        ('{"tag": "</think>"}', '{"tag": "</think>"}'),
        ('```json\n{"tag": "<think>"}\n```', '```json\n{"tag": "<think>"}\n```'),
        ('Sure: {"tag": "<think>x</think>"}', 'Sure: {"tag": "<think>x</think>"}'),
        ('{"tag": "use <think>", "cut": "o', '{"tag": "use <think>", "cut": "o'),
        ('<think>hm</think>{"tag": "\\"<think>\\""}', '{"tag": "\\"<think>\\""}'),
    ],
)
def test_what_is_left(raw: str, left: str) -> None:
    stripped = strip_reasoning(raw)

    assert stripped.text == left
    assert (stripped.stripped_bytes > 0) is (left != raw.strip())
    assert strip_reasoning(left).text == left


@pytest.mark.parametrize(
    ("raw", "stripped_bytes"),
    [
        ("plain", 0),
        ("  plain  ", 0),  # whitespace is not reasoning
        (f"<think>hm</think>{PLAN}", 17),
        (f"<think>é</think>{PLAN}", 17),  # bytes, not characters
        ("<think>hm", 9),
    ],
)
def test_stripped_bytes_are_utf8_bytes(raw: str, stripped_bytes: int) -> None:
    assert strip_reasoning(raw).stripped_bytes == stripped_bytes


@pytest.mark.parametrize(
    ("raw", "unclosed"),
    [
        ("", ""),
        (PLAN, ""),
        (f"<think>hm</think>{PLAN}", ""),
        (f"hm</think>{PLAN}", ""),
        ("<think>hm, hm", "hm, hm"),
        (f"<think>hm {PLAN}", f"hm {PLAN}"),
        ("The answer. <think>or is it", "or is it"),
        (f"<think>a</think> <reasoning>{PLAN}", PLAN),
        (f"<think>a <thinking>b {PLAN}", f"a <thinking>b {PLAN}"),
        ("<think>a <think> b</think>one <think>two", "two"),  # what closed stays closed
        (f"◁think▷hm {PLAN}", f"hm {PLAN}"),
        (f"[REASONING]\n{PLAN}", ""),  # a heading
        ('{"tag": "<think>x"}', ""),
        ('Sure: {"tag": "<think>x"}', ""),
    ],
)
def test_thoughts_that_never_close_are_kept_apart(raw: str, unclosed: str) -> None:
    assert strip_reasoning(raw).unclosed == unclosed


PIECES = st.sampled_from(
    [
        "<think>",
        "</think>",
        "<thinking>",
        "</thinking>",
        "<reasoning>",
        "</reasoning>",
        "<think/>",
        "[REASONING]",
        "[/REASONING]",
        "◁think▷",
        "◁/think▷",
        "<|begin_of_thought|>",
        "<|end_of_solution|>",
        "<|channel|>",
        "<|channel|>analysis<|message|>",
        "<|channel|>final<|message|>",
        "<|end|>",
        "analysis",
        "assistantfinal",
        "<th",
        "ink>",
        "</th",
        "{",
        "}",
        '"',
        '\\"',
        '{"a":1}',
        "```json\n",
        "```",
        "\n",
        "\n\n\n",
        " ",
        "text",
        "\ud800",
    ]
)
REPLIES = st.lists(PIECES, max_size=14).map("".join)


@given(REPLIES)
@settings(max_examples=400, deadline=None)
def test_stripping_twice_is_stripping_once(raw: str) -> None:
    once = strip_reasoning(raw)

    twice = strip_reasoning(once.text)

    assert twice.text == once.text
    assert twice.stripped_bytes == 0
    assert once.stripped_bytes >= 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | REPLIES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(REPLIES, inner, max_size=3),
    max_leaves=6,
)


@given(value=JSON, ensure_ascii=st.booleans(), indent=st.none() | st.just(2))
@settings(max_examples=100, deadline=None)
def test_valid_json_is_left_alone(value: object, ensure_ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)

    assert strip_reasoning(text).text == text
    assert strip_reasoning(text).stripped_bytes == 0


@given(thoughts=st.text(alphabet="ab {}\n", max_size=30), answer=st.text("xy z", max_size=20))
@settings(max_examples=60, deadline=None)
def test_a_closed_block_never_shows(thoughts: str, answer: str) -> None:
    assert strip_reasoning(f"<think>{thoughts}</think>{answer}").text == answer.strip()
    assert strip_reasoning(f"{thoughts}</think>{answer}").text == answer.strip()


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "<think",
        "<think ",
        '"<think>',
        "<think></think>",
        "<think></reasoning>",
        "[REASONING]",
        "<|channel|>",
        "\n \n",
        "{",
        "[",
    ],
)
def test_a_large_reply_of_nothing_but_markers_comes_to_an_end(piece: str) -> None:
    raw = piece * (300_000 // len(piece))

    assert len(strip_reasoning(raw).text) <= len(raw)


def test_markers_that_come_together_again_and_again_leave_nothing() -> None:
    raw = "<thi" * 2000 + "<think></think>" + "nk></think>" * 2000

    assert strip_reasoning(raw).text == ""
