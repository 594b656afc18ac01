"""Decoding: the value a model was asked for, out of whatever it wrote around it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.calls.finish import FinishReason
from helmdash.core.decoding.decoding import Stage, Undecodable, decode

PLAN = '{"steps":[{"order":1,"tool":"a"}]}'
PLAN_VALUE = {"steps": [{"order": 1, "tool": "a"}]}


def is_plan(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("steps"), list)


def is_full_plan(value: object) -> bool:
    return isinstance(value, dict) and bool(value.get("steps"))


@pytest.mark.parametrize(
    ("raw", "value", "stage"),
    [
        # the value the reply starts with
        (PLAN, PLAN_VALUE, "first_value"),
        (f"  \n{PLAN}\n ", PLAN_VALUE, "first_value"),
        (f"\ufeff{PLAN}", PLAN_VALUE, "first_value"),
        (f"<think>hm</think>{PLAN}", PLAN_VALUE, "first_value"),
        (f"<reasoning>hm</reasoning>\n{PLAN}", PLAN_VALUE, "first_value"),
        (f"```json\n{PLAN}\n```", PLAN_VALUE, "first_value"),
        (f"```\n{PLAN}\n```", PLAN_VALUE, "first_value"),
        (f"~~~json\n{PLAN}\n~~~", PLAN_VALUE, "first_value"),
        (f"```json {PLAN} ```", PLAN_VALUE, "first_value"),
        (f"```{PLAN}```", PLAN_VALUE, "first_value"),
        (f"```json\n{PLAN}", PLAN_VALUE, "first_value"),  # the fence never closes
        (f"<think>hm</think>\n```json\n{PLAN}\n```", PLAN_VALUE, "first_value"),
        (f"{PLAN}\n<br/>Have fun!", PLAN_VALUE, "first_value"),
        (f"{PLAN}\n```\nHope this helps.", PLAN_VALUE, "first_value"),
        (f"```json\n{PLAN}\n```\nHope this helps.", PLAN_VALUE, "first_value"),
        ('{"a":"}"}', {"a": "}"}, "first_value"),
        ('{"a":"\\"}"} and more', {"a": '"}'}, "first_value"),
        ('["a","b"]', ["a", "b"], "first_value"),
        ("{}", {}, "first_value"),
        ("[]", [], "first_value"),
        ("null", None, "first_value"),
        ("42", 42, "first_value"),
        ('"just a word"', "just a word", "first_value"),
        ('{"order":"1"}', {"order": "1"}, "first_value"),
        ('{"a":"<think>x</think>"}', {"a": "<think>x</think>"}, "first_value"),
        # somewhere in the reply, the last one
        (f"Here is the plan: {PLAN} Good luck.", PLAN_VALUE, "scan"),
        (f'He said "use this: {PLAN}', PLAN_VALUE, "scan"),  # the odd quote hides nothing
        (f"It's {{important}} to note: {PLAN}", PLAN_VALUE, "scan"),
        (f'For example {{"steps":[]}}. Now: {PLAN}', PLAN_VALUE, "scan"),
        (f"[1] As the source says: {PLAN} [2]", PLAN_VALUE, "scan"),
        (f"1. {PLAN}", PLAN_VALUE, "scan"),
        (f"<answer>{PLAN}</answer>", PLAN_VALUE, "scan"),
        (f"Sure!\n```json\n{PLAN}\n```\nDone.", PLAN_VALUE, "scan"),
        ('The ids are ["a","b"].', ["a", "b"], "scan"),
        # mended
        ('{"a":1,}', {"a": 1}, "repair"),
        ('{"a":[1,2,],}', {"a": [1, 2]}, "repair"),
        ("{'a': 'it', \"b\": 'say \"x\"'}", {"a": "it", "b": 'say "x"'}, "repair"),
        ("{'a': 'don\\'t'}", {"a": "don't"}, "repair"),
        (
            "{'ok': True, 'no': False, 'none': None}",
            {"ok": True, "no": False, "none": None},
            "repair",
        ),
        ('{"a": "True, None,}"', {"a": "True, None,}"}, None),  # strings stay; see below
        ('{"a":NaN,"b":-Infinity,"c":undefined}', {"a": None, "b": None, "c": None}, "repair"),
        # numbers that nothing holds, as bare Infinity
        ('{"a":1e999,"b":[-1e999,2]}', {"a": None, "b": [None, 2]}, "repair"),
        (f'{{"a":{"9" * 5_000}}}', {"a": None}, "repair"),
        ('{"a":"two\nlines"}', {"a": "two\nlines"}, "repair"),
        ("{\u201ca\u201d: \u201cb\u201d}", {"a": "b"}, "repair"),
        (f"Plan: {PLAN[:-2]},]}}", PLAN_VALUE, "repair"),
        ("{a: 1, b-c : {d_1:2}}", {"a": 1, "b-c": {"d_1": 2}}, "repair"),
        # guessed
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, "guess"),
        ('{"a": "he said "hi" to"}', {"a": 'he said "hi" to'}, "guess"),
        ('{"a": [1, 2}', {"a": [1, 2]}, "guess"),
        ('{"a": 1 /* one */}', {"a": 1}, "guess"),
    ],
)
def test_what_is_found_and_how(raw: str, value: object, stage: str | None) -> None:
    decoded = decode(raw)

    assert decoded.value == value
    assert decoded.stage == (stage or decoded.stage)
    assert decoded.partial is (decoded.stage is Stage.SALVAGE)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        # steps that were written to their end
        ('{"steps":[{"order":1,"tool":"a"},{"order":2,"to', PLAN_VALUE),
        ('{"steps":[{"order":1,"tool":"a"},{"order":2,"tool":"b"', PLAN_VALUE),
        ('{"steps":[{"order":1,"tool":"a"},', PLAN_VALUE),
        ('{"steps":[{"order":1,"tool":"a"}', PLAN_VALUE),
        ('{"steps":[{"order":1,"tool":"a"}]', PLAN_VALUE),
        ('{"steps":[{"order":1,"tool":"a"},{"args":{"ids":[1,2,{"x":1},', PLAN_VALUE),
        ('{"complexity":"pack-chain","steps":[{"or', {"complexity": "pack-chain", "steps": []}),
        ('{"a":"x","steps":["one","two","thr', {"a": "x", "steps": ["one", "two"]}),
        ('[{"a":1},{"a":2},{"a":', [{"a": 1}, {"a": 2}]),
        ("[1, 2, 3", [1, 2]),  # 3 may have been the start of 30
        ('["a", "b"', ["a", "b"]),  # a closed string is whole
        # a list that only wraps does not decide
        ('[{"steps":[{"order":1,"tool":"a"},{"or', [PLAN_VALUE]),
        # the last string is cut, though it ends in a bracket
        ('{"steps":[{"order":1,"tool":"a"},{"b":["}', PLAN_VALUE),
        # members, where no list is open
        ('{"recommendation":{"id":"x","why":"beca', {"recommendation": {"id": "x"}}),
        ('{"a":1,"b":2', {"a": 1}),
        ('{"a":1,"b"', {"a": 1}),
        ('{"a":[1,2],"b":{"c":3},"d', {"a": [1, 2], "b": {"c": 3}}),
        # in prose, in a fence, in sloppy JSON
        ('Here:\n```json\n{"steps":[{"order":1,"tool":"a"},{"ord', PLAN_VALUE),
        ("{'steps':[{'order':1,'tool':'a'},{'order':2,'tool':'b", PLAN_VALUE),
        ("{steps:[{order:1,tool:'a'},{order:2,tool:'b", PLAN_VALUE),
        ('<think>hm</think>{"steps":[{"order":1,"tool":"a"},{"x', PLAN_VALUE),
    ],
)
def test_of_a_cut_reply_only_what_is_complete_is_kept(raw: str, value: object) -> None:
    decoded = decode(raw, finish_reason=FinishReason.LENGTH)

    assert decoded.value == value
    assert decoded.partial
    assert decoded.stage is Stage.SALVAGE


@pytest.mark.parametrize(
    ("raw", "value", "stage"),
    [
        # the first value is an example
        (f'{{"example":1}} so: {PLAN}', PLAN_VALUE, "scan"),
        # the last that is accepted, not the last
        (f'{PLAN} and {PLAN} then {{"note":1}}', PLAN_VALUE, "first_value"),
        (f'x {PLAN} then {{"note":1}}', PLAN_VALUE, "scan"),
        # wrapped
        (f'{{"plan":{PLAN}}}', PLAN_VALUE, "scan"),
        (f'[{{"note":1}},{{"deep":[{PLAN}]}}]', PLAN_VALUE, "scan"),
        # a scalar is not what was asked for
        (f"null {PLAN}", PLAN_VALUE, "scan"),
        # readable values are refused, a broken one is mended
        (f'{{"note":1}} {PLAN[:-1]},}}', PLAN_VALUE, "repair"),
        # an opening that leads nowhere
        (f'Pick one of ["a", "b" or so. {PLAN}', PLAN_VALUE, "scan"),
        (f'{{"plan": {PLAN}, "rest": ["cut', PLAN_VALUE, "scan"),
        # cut off
        (f'{PLAN[:-2]},{{"order":2', PLAN_VALUE, "salvage"),
    ],
)
def test_a_caller_that_knows_what_it_wants_gets_it(raw: str, value: object, stage: str) -> None:
    decoded = decode(raw, accepts=is_full_plan)

    assert decoded.value == value
    assert decoded.stage == stage


OTHER = '{"steps":[{"order":1,"tool":"z"}]}'


@pytest.mark.parametrize(
    "raw",
    [
        f"<think>\nI should scrape.\nFinal answer:\n{PLAN}",
        f"<think>{PLAN}",
        f"<thinking>hm{PLAN}",
        f"<think>\nSo:\n```json\n{PLAN}\n```",
        f"<think>\nSo:\n```json\n{PLAN}",
        f"<think>{PLAN} is my answer.",
        f"Let me think. <think>hm {PLAN}",
        f"◁think▷hm {PLAN}",
        f"<think>hm</think><think>{PLAN}",
        f'<think>{{"plan":{PLAN}}}',
        f"<think>{PLAN[:-1]},}}",
        f"<think>{PLAN} or [1, 2] or {{'b': 1}}",
        f'<think>one of ["a", "b" or so: {PLAN}',
        # the last one; what stands before it is a draft, whatever has to be mended
        f"<think>{OTHER} no, {PLAN}",
        f"<think>{OTHER} no, {PLAN[:-1]},}}",
        f"<think>{OTHER} no, {PLAN.replace(',', ' ')}",
    ],
)
@pytest.mark.parametrize("finish", [None, FinishReason.STOP, FinishReason.OTHER])
def test_an_answer_in_thoughts_that_never_close_is_found(
    raw: str, finish: FinishReason | None
) -> None:
    decoded = decode(raw, finish_reason=finish, accepts=is_full_plan)

    assert (decoded.value, decoded.stage, decoded.partial) == (PLAN_VALUE, "thoughts", False)
    assert decoded.stripped_bytes > 0


def test_what_is_complete_of_an_answer_in_thoughts_is_partial() -> None:
    decoded = decode(f'<think>{OTHER} no: {PLAN[:-2]},{{"order":2', accepts=is_full_plan)

    assert (decoded.value, decoded.stage, decoded.partial) == (PLAN_VALUE, "thoughts", True)


@pytest.mark.parametrize(
    ("raw", "stage"),
    [
        (f"{PLAN}<think>or {OTHER}", "first_value"),
        (f"<think>{OTHER}</think>{PLAN}", "first_value"),
        (f"So {PLAN} <think>or {OTHER}", "scan"),
        (f"{PLAN[:-1]},}}<think>or {OTHER}", "repair"),
    ],
)
def test_an_answer_outside_of_thoughts_goes_first(raw: str, stage: str) -> None:
    decoded = decode(raw, accepts=is_full_plan)

    assert (decoded.value, decoded.stage) == (PLAN_VALUE, stage)


@pytest.mark.parametrize(
    ("raw", "finish", "rule"),
    [
        # closed
        (f"<think>{PLAN}</think>", "stop", "empty.reply"),
        (f"{PLAN}</think>", "stop", "empty.reply"),
        (f"<think>{PLAN}</think><think>hm", "stop", "empty.reply"),
        (f"<think>{PLAN}</think>I cannot.", "stop", "undecodable.reply"),
        # the reply was broken off while the model was thinking
        (f"<think>hm {PLAN} or", "length", "length.reasoning"),
        (f"<think>hm {PLAN} or", "content_filter", "safety.finish_reason"),
        (f"<think>hm {PLAN} or", "error", "upstream.finish_reason"),
        # what stands outside was meant as the answer
        (f'{{"tool":"a"}}<think>or {PLAN}', "stop", "undecodable.schema"),
        (f'So {{"tool":"a"}} <think>or {PLAN}', "stop", "undecodable.schema"),
        (f'{{"tool":<think>or {PLAN}', "stop", "deadlock.reply"),
        # nothing there
        ('<think>hm {"a":1}', "stop", "empty.reply"),
        ("<think>hm", "stop", "empty.reply"),
    ],
)
def test_other_thoughts_hold_no_answer(raw: str, finish: str, rule: str) -> None:
    with pytest.raises(Undecodable) as raised:
        decode(raw, finish_reason=FinishReason(finish), accepts=is_full_plan)

    assert raised.value.cause.rule == rule


def test_without_a_check_thoughts_stay_thoughts() -> None:
    with pytest.raises(Undecodable):
        decode(f"<think>{PLAN}")


def test_a_refused_value_at_every_stage_is_undecodable() -> None:
    with pytest.raises(Undecodable) as raised:
        decode('{"a":1} {"b":2,} {"c": 1 "d": 2} {"e":[1,2', accepts=is_plan)

    assert raised.value.cause.rule == "undecodable.schema"


@pytest.mark.parametrize(
    ("raw", "finish", "cause", "rule"),
    [
        # empty
        ("", None, "likely_timeout", "timeout.silent"),
        ("  \n ", None, "likely_timeout", "timeout.silent"),
        ("", "stop", "empty_completion", "empty.reply"),
        ("", "length", "length_truncated", "length.empty"),
        ("", "content_filter", "safety_filtered", "safety.finish_reason"),
        ("", "refusal", "refused", "refusal.finish_reason"),
        ("", "error", "upstream_error_in_200", "upstream.finish_reason"),
        ("", "cancelled", "client_disconnected", "client.disconnected"),
        ("", "tool_calls", "empty_completion", "empty.reply"),
        ("", "other", "empty_completion", "empty.reply"),
        ("```\n```", "stop", "undecodable", "undecodable.reply"),
        # thoughts only
        ("<think>hm</think>", None, "likely_timeout", "timeout.silent"),
        ("<think>hm, hm", "length", "reasoning_exhausted", "length.reasoning"),
        ("<think>hm</think>", "stop", "empty_completion", "empty.reply"),
        # not JSON
        ("I cannot do that.", None, "undecodable", "undecodable.reply"),
        ("I cannot do that.", "stop", "undecodable", "undecodable.reply"),
        ("I cannot do", "length", "length_truncated", "length.structured"),
        ("I cannot", "content_filter", "safety_filtered", "safety.finish_reason"),
        ("42 is the answer", "stop", "undecodable", "undecodable.reply"),
        # broken JSON
        ('{"steps', "stop", "constrained_deadlock", "deadlock.reply"),
        ('{"steps', None, "constrained_deadlock", "deadlock.reply"),
        ("[[[[", "stop", "constrained_deadlock", "deadlock.reply"),
        ('{"steps":[{"order":1', "stop", "constrained_deadlock", "deadlock.reply"),
        ('{"steps', "length", "length_truncated", "length.structured"),
        ('{"steps', "content_filter", "safety_filtered", "safety.finish_reason"),
        ('Sure: {"steps', "stop", "constrained_deadlock", "deadlock.reply"),
    ],
)
def test_what_cannot_be_decoded_has_a_cause(
    raw: str, finish: str | None, cause: str, rule: str
) -> None:
    reason = FinishReason(finish) if finish else None

    with pytest.raises(Undecodable) as raised:
        decode(raw, finish_reason=reason, label="routing")

    assert (raised.value.cause.name, raised.value.cause.rule) == (cause, rule)
    assert "routing" in str(raised.value)
    assert raised.value.cause.detail in str(raised.value)


def test_bytes_of_reasoning_are_reported() -> None:
    assert decode(f"<think>hm</think>{PLAN}").stripped_bytes == 17
    assert decode(PLAN).stripped_bytes == 0


@pytest.mark.parametrize(
    ("raw", "value", "stage"),
    [
        ('{"a":"\\ud800"}', {"a": "\ufffd"}, "first_value"),
        ('{"a":"\\uDFFFx"}', {"a": "\ufffdx"}, "first_value"),  # the second half alone
        ('{"a\\ud800b":[1]}', {"a\ufffdb": [1]}, "first_value"),  # in a key
        ('"\\ud800"', "\ufffd", "first_value"),
        ('{"a":"\ud800"}', {"a": "\ufffd"}, "first_value"),  # not escaped
        ('{"a":"\\ud800\\ud83d\\ude00"}', {"a": "\ufffd\U0001f600"}, "first_value"),
        ('{"a":"\ud83d\ude00"}', {"a": "\U0001f600"}, "first_value"),  # two halves are a whole
        ('{"a":"\\\\ud800"}', {"a": "\\ud800"}, "first_value"),  # an escaped backslash
        ('{"a":"\\\\\\ud800"}', {"a": "\\\ufffd"}, "first_value"),
        ('So: {"a":"\\ud800"} it is', {"a": "\ufffd"}, "scan"),
        ("{'a':'\\ud800',}", {"a": "\ufffd"}, "repair"),
        ('{"s":["\\ud800","\\udc', {"s": ["\ufffd"]}, "salvage"),
        ('{"a": "\\ud800" "b": 2}', {"a": "\ufffd", "b": 2}, "guess"),
        # the library reads each half of a pair for itself
        ('{"a": "\\ud83d\\ude00" "b": 2}', {"a": "\U0001f600", "b": 2}, "guess"),
    ],
)
def test_half_a_surrogate_pair_becomes_the_replacement_character(
    raw: str, value: object, stage: str
) -> None:
    decoded = decode(raw)

    assert (decoded.value, decoded.stage) == (value, stage)


def test_the_caller_judges_the_text_that_it_will_get() -> None:
    shown: list[object] = []

    def accept(value: object) -> bool:
        shown.append(value)
        return True

    decode('{"a":"\\ud800"}', accepts=accept)

    assert shown == [{"a": "\ufffd"}]


def test_a_number_too_large_to_hold_spoils_nothing_but_itself() -> None:
    raw = '{"steps":[{"tool":"a","args":{"n":1e999,"url":"x"}}]}'

    decoded = decode(raw, accepts=is_full_plan)

    assert decoded.value == {"steps": [{"tool": "a", "args": {"n": None, "url": "x"}}]}


def test_depth_beyond_the_reader_is_undecodable() -> None:
    with pytest.raises(Undecodable):
        decode('{"a":' * 5000 + "1" + "}" * 5000)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(["<think>", "</think>", "```", "{", "}]", '"', "\\", "◁think▷"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(max_size=6), JSON, min_size=1, max_size=4)


@given(value=JSON, ensure_ascii=st.booleans(), indent=st.none() | st.just(2))
@settings(max_examples=80, deadline=None)
def test_a_valid_document_decodes_to_itself(
    value: object, ensure_ascii: bool, indent: int | None
) -> None:
    decoded = decode(json.dumps(value, ensure_ascii=ensure_ascii, indent=indent))

    assert decoded.value == value
    assert (decoded.stage, decoded.partial, decoded.stripped_bytes) == ("first_value", False, 0)


@given(value=OBJECTS, before=st.text("ab '.,\n", max_size=12), after=st.text("ab '.,", max_size=12))
@settings(max_examples=50, deadline=None)
def test_prose_around_an_object_does_not_matter(
    value: dict[str, Any], before: str, after: str
) -> None:
    raw = f"{before}{json.dumps(value)}{after}"

    assert decode(raw).value == value


@given(steps=st.lists(OBJECTS, min_size=1, max_size=4), cut=st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_a_cut_list_gives_a_true_prefix_of_its_steps(steps: list[dict[str, Any]], cut: int) -> None:
    whole = json.dumps({"steps": steps})

    try:
        decoded = decode(whole[:-cut], accepts=is_full_plan)
    except Undecodable:
        return
    assert decoded.partial
    assert isinstance(decoded.value, dict)
    kept = decoded.value["steps"]
    assert kept == steps[: len(kept)]


NOISE = st.lists(
    st.sampled_from(
        [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            '"',
            "'",
            "\\",
            "a",
            "1",
            "-",
            " ",
            "\n",
            "null",
            "True",
            "<think>",
            "</think>",
            "```",
            "```json\n",
            '{"a":1}',
            '{"steps":[',
            "//",
            "\u201c",
            "\u201d",
            "\ud800",
            "\\ud83d",
            "\\ude00",
        ]
    ),
    max_size=16,
).map("".join)


@given(raw=NOISE | st.text(max_size=40), finish=st.none() | st.sampled_from(FinishReason))
@settings(max_examples=200, deadline=None)
def test_nothing_but_undecodable_is_ever_raised(raw: str, finish: FinishReason | None) -> None:
    for accepts in (None, is_plan):
        try:
            decoded = decode(raw, finish_reason=finish, accepts=accepts)
        except Undecodable:
            continue
        assert accepts is None or accepts(decoded.value)
        assert json.dumps(decoded.value, allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        "[",
        '{"a":',
        '{"a":[',
        "[{",
        "[1,",
        "[1,]",
        "{x:1}",
        '{"a" 1}',
        '{"a":"',
        "{'",
        '"\\"',
        "<think>",
        '{"a":1}',
        "{\u201c",
        "{ ",
        "```",
        ",",
    ],
)
@pytest.mark.parametrize("before", ["", "<think>"])
def test_a_large_reply_of_noise_comes_to_an_end(piece: str, before: str) -> None:
    raw = before + piece * (100_000 // len(piece))

    with pytest.raises(Undecodable):
        decode(raw, accepts=is_plan)


@pytest.mark.parametrize(
    "raw",
    [
        '{"a":1}' * 20_000,
        "[" + '{"a":1},' * 20_000 + "{}]",  # inside of one value
        '[["cut' + '"] {"a":1}' * 20_000,  # inside of what never closes
    ],
    ids=["many", "inside", "never closes"],
)
@pytest.mark.parametrize("before", ["", "<think>"])
def test_a_caller_is_asked_a_bounded_number_of_times(raw: str, before: str) -> None:
    asked = 0

    def refuse(value: object) -> bool:
        nonlocal asked
        asked += 1
        return False

    with pytest.raises(Undecodable):
        decode(before + raw, accepts=refuse)

    assert asked < 10_000


def test_the_answer_is_found_behind_a_long_log() -> None:
    log = '{"note":1}\n' * 20_000

    assert decode(log + PLAN, accepts=is_plan).value == PLAN_VALUE
    assert decode(f'{log}{{"plan":{PLAN}}}', accepts=is_plan).value == PLAN_VALUE
    assert decode(log + PLAN[:-2], accepts=is_plan).partial


def test_each_value_is_shown_once() -> None:
    shown: list[object] = []

    def refuse(value: object) -> bool:
        shown.append(value)
        return False

    with pytest.raises(Undecodable):
        decode('x {"a":{"b":1}} y {"c":2}', accepts=refuse)

    assert shown == [{"c": 2}, {"a": {"b": 1}}, {"b": 1}]


# Each of them cost ten microseconds and more for each of its pieces.
@pytest.mark.parametrize("piece", ["<think>", "<think></think>", "[]", "][", "{a:1,}", "{'a':1}"])
def test_of_a_text_with_too_many_pieces_the_end_counts(piece: str) -> None:
    noise = piece * (1_000_000 // len(piece))

    with pytest.raises(Undecodable) as told:
        decode(noise, accepts=is_plan)

    assert told.value.cause.advice
    closed = noise + "</think>" if piece == "<think>" else noise
    assert decode(f"{closed} {PLAN}", accepts=is_plan).value == PLAN_VALUE


def test_a_large_value_is_read_whole_however_many_brackets_it_has() -> None:
    entries = [{"id": number, "tags": [[], {}]} for number in range(40_000)]

    assert decode(json.dumps(entries)).value == entries
