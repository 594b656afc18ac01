"""Plans: from whatever a model answered to steps that can be called, or to a refusal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.calls.finish import FinishReason
from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.decoding.decoding import Undecodable
from helmdash.core.planning.plan_reading import (
    complexity_of,
    decode_plan,
    is_plan_shaped,
    is_step_shaped,
    read_plan,
    rewrite_prompt,
)
from helmdash.core.planning.plans import (
    MOST_STEPS,
    PIPELINE_RUN,
    UNKNOWN_TOOL,
    ArgFault,
    CompletedStep,
    Complexity,
    Plan,
    UnusablePlan,
)
from tests.core.catalogs import make_pack, make_pipeline

SINGLE, FULL = PromptVariant.SINGLE_PICK, PromptVariant.FULL_STEPS
CATALOG = {
    "packs": [
        make_pack("blog.publish", input_schema={"type": "object"}),
        make_pack("web.scrape"),
        make_pack("fs.read"),
        make_pack("helmdeck.plan"),
    ],
    "pipelines": [make_pipeline("builtin.blog", metadata={"inputs": {"brief": "string"}})],
}
READ_A = {"tool": "fs.read", "args": {"path": "a"}}
PUBLISH = {"tool": "blog.publish", "args": {}, "rationale": "it goes live"}


def no_faults(schema: object, args: object) -> tuple[ArgFault, ...]:
    return ()


def all_faulty(schema: object, args: Mapping[str, object]) -> tuple[ArgFault, ...]:
    return tuple(ArgFault(name, "is wrong") for name in args)


def make_plan(
    value: object,
    variant: PromptVariant = FULL,
    *,
    completed: Sequence[CompletedStep] = (),
    catalog: object = CATALOG,
    suggest: Callable[[str], tuple[str, ...]] = lambda text: (),
    check_args: Any = no_faults,
    intent: str = "Write it up.",
    partial: bool = False,
) -> Plan:
    return read_plan(
        value,
        catalog=parse_catalog(catalog),
        variant=variant,
        intent=intent,
        check_args=check_args,
        suggest=suggest,
        completed=completed,
        partial=partial,
    )


def rule_of(value: object, variant: PromptVariant = FULL, **over: Any) -> str:
    with pytest.raises(UnusablePlan) as refused:
        make_plan(value, variant, **over)
    return refused.value.rule


# --- what a plan looks like --------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {"steps": [PUBLISH]},
        {"steps": []},  # a plan; read_plan says what is wrong with it
        {"steps": ["a", None]},
        {"steps": PUBLISH},  # one object in place of a list
        {"steps": None, "complexity": "single-action"},
        [PUBLISH, None],
        [{"function": {"name": "web.scrape", "arguments": "{}"}}],  # as tool calls are written
        {"plan": {"steps": [PUBLISH]}},
        {"plan": [PUBLISH]},
        {"result": {"plan": {"steps": []}}},
        {"done": True, "reasoning": "All done."},
    ],
)
def test_a_plan_is_known_by_its_steps(value: object) -> None:
    assert is_plan_shaped(value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        [],
        "steps",
        3,
        ["web.scrape"],
        [{"title": "a"}],
        {"steps": "first"},
        {"steps": {"type": "array"}},  # a schema
        {"done": True, "model": "m"},  # a chunk of a stream
        {"supersedes": ["a"], "steps": [{"pack": "a"}]},  # a pipeline of the catalog
        [{"id": "s", "pack": "a", "name": "n", "input": {}}],  # its steps
        {"name": "web.scrape", "parameters": {}},  # a tool that is described
        PUBLISH,  # a lone step
    ],
)
def test_other_values_are_no_plan(value: object) -> None:
    assert not is_plan_shaped(value)


def test_a_lone_step_counts_only_where_there_is_no_plan() -> None:
    plan, step = json.dumps({"steps": [READ_A]}), json.dumps(PUBLISH)

    assert is_step_shaped(PUBLISH)
    assert decode_plan(f"Do {plan}, each as in {step}.").value == {"steps": [READ_A]}
    assert make_plan(decode_plan(f"Next: {step}").value, SINGLE).steps[0].tool == "blog.publish"


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({"steps": []}, {"steps": [READ_A]}, "second"),
        ({"steps": [READ_A]}, {"steps": []}, "first"),
        ({"steps": [None, " "]}, {"plan": {"steps": [READ_A]}}, "second"),
        ({"steps": [READ_A]}, {"steps": [PUBLISH]}, "first"),  # the reply starts with it
        ({"steps": [READ_A]}, {"steps": [], "done": True}, "first"),
        ({"steps": [], "done": True}, {"steps": [READ_A]}, "first"),  # that is an answer, too
        ({"steps": []}, READ_A, "first"),  # a lone step may be an example
        ({"steps": []}, {"title": "a"}, "first"),
    ],
)
def test_a_plan_with_steps_goes_before_an_empty_one(
    first: object, second: object, found: str
) -> None:
    raw = f"{json.dumps(first)}\nThat is:\n{json.dumps(second)}"

    assert decode_plan(raw).value == (first if found == "first" else second)


def test_a_reply_without_either_is_undecodable_with_its_cause() -> None:
    with pytest.raises(Undecodable) as refused:
        decode_plan('{"title": "a"', finish_reason=FinishReason.LENGTH)

    assert refused.value.cause.name == "length_truncated"


# --- steps -------------------------------------------------------------------------------------


def test_steps_are_numbered_in_the_order_of_the_list() -> None:
    plan = make_plan({"steps": [{**PUBLISH, "order": 7}, {**READ_A, "order": "1"}]})

    assert [(step.order, step.tool) for step in plan.steps] == [(1, "blog.publish"), (2, "fs.read")]
    assert plan.steps[0].client_tool == "helmdeck__blog-publish"
    assert (plan.notes, plan.partial, plan.more_steps_likely) == ((), False, None)


@pytest.mark.parametrize(
    "step",
    [
        {"tool": PIPELINE_RUN, "args": {"id": "builtin.blog", "inputs": {"brief": "b"}}},
        {"tool": "pipeline-run", "args": {"pipeline_id": "builtin.blog", "inputs": {"brief": "b"}}},
        {"tool": "helmdeck.pipeline-run", "args": {"pipeline": "builtin.blog", "brief": "b"}},
        {"tool": "pipeline_run", "args": {"id": "Builtin-Blog", "inputs": '{"brief": "b"}'}},
        # The id beside the arguments.
        {"tool": PIPELINE_RUN, "id": "builtin.blog", "inputs": {"brief": "b"}},
        {"tool": PIPELINE_RUN, "pipeline": "builtin.blog", "args": {"inputs": {"brief": "b"}}},
        {"tool": "builtin.blog", "args": {"brief": "b"}},  # its id as a tool
        {"tool": "builtin.blog", "args": {"id": "builtin.blog", "inputs": {"brief": "b"}}},
    ],
)
def test_a_pipeline_is_called_in_one_way(step: object) -> None:
    found = make_plan({"steps": [step]}).steps[0]

    assert found.tool == found.client_tool == PIPELINE_RUN
    assert found.args == {"id": "builtin.blog", "inputs": {"brief": "b"}}
    assert (found.entry, found.is_pipeline, found.gap) == ("builtin.blog", True, None)


def test_a_pack_is_not_run_as_a_pipeline() -> None:
    run = {"tool": PIPELINE_RUN, "args": {"id": "fs.read", "inputs": {"path": "a"}}}

    plan = make_plan({"steps": [run]})

    assert (plan.steps[0].tool, plan.steps[0].args) == ("fs.read", {"path": "a"})
    assert "fs.read is a pack" in plan.notes[0]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"args": {"a": 1}}, "names no tool"),
        ({"tool": "  "}, "names no tool"),
        ({"tool": "helmdeck.plan"}, "cannot call itself"),  # although the catalog has it
        ({"tool": "helmdeck__route"}, "cannot call itself"),
        ({"tool": PIPELINE_RUN, "args": {"id": "helmdeck.plan"}}, "cannot call itself"),
        ({"tool": PIPELINE_RUN}, "args.id is missing"),
        ({"tool": PIPELINE_RUN, "args": {"id": 3}}, "args.id is missing"),
        ({"tool": PIPELINE_RUN, "args": {"id": "builtin.x"}}, "not in the catalog"),
        ({"tool": "youtube.get"}, 'tool "youtube.get" is not in the catalog'),
    ],
)
def test_what_cannot_be_called_is_a_gap(step: dict[str, Any], reason: str) -> None:
    found = make_plan({"steps": [{**step, "rationale": "needed"}]}).steps[0]

    assert found.gap is not None
    assert reason in found.gap.reason
    assert found.rationale == f"gap: {found.gap.reason} - model said: needed"
    assert (found.tool, found.entry, found.client_tool) == (UNKNOWN_TOOL, None, None)
    assert found.args == step.get("args", {})


def test_a_gap_tells_the_nearest_entries_by_spelling_and_by_meaning() -> None:
    def suggest(text: str) -> tuple[str, ...]:
        assert text == "web.scraping get the page"
        return ("fs.read", "web.scrape", "helmdeck.plan", "not.there")

    step = {"tool": "web.scraping", "rationale": "get the page"}
    found = make_plan({"steps": [step]}, suggest=suggest).steps[0]

    assert found.gap is not None
    assert found.gap.suggestions == ("web.scrape", "fs.read")


def test_a_gap_whose_name_says_nothing_is_suggested_for_by_the_intent() -> None:
    texts: list[str] = []

    def suggest(text: str) -> tuple[str, ...]:
        texts.append(text)
        return ()

    make_plan({"steps": [{"tool": "helmdeck.plan"}, {"tool": PIPELINE_RUN}]}, suggest=suggest)

    assert texts == ["Write it up."]  # asked once for both


@pytest.mark.parametrize("tool", ["unknown", "Unknown", "<unknown>", "none", "N/A"])
def test_a_part_that_the_model_found_no_entry_for_tells_what_it_wanted(tool: str) -> None:
    texts: list[str] = []

    def suggest(text: str) -> tuple[str, ...]:
        texts.append(text)
        return ("fs.read",)

    why = "Fetch the captions of the talk. Nothing here does it."
    found = make_plan({"steps": [{"tool": tool, "rationale": why}]}, suggest=suggest).steps[0]

    assert found.gap is not None
    assert found.gap.reason == "the model found no entry for this part"
    assert found.gap.asked == "Fetch the captions of the talk."
    assert found.gap.suggestions == ("fs.read",)
    assert texts == [why]


def test_a_part_without_entry_and_words_is_suggested_for_by_the_intent() -> None:
    texts: list[str] = []

    def suggest(text: str) -> tuple[str, ...]:
        texts.append(text)
        return ()

    found = make_plan({"steps": [{"tool": "unknown"}]}, suggest=suggest).steps[0]

    assert found.gap is not None
    assert (found.gap.asked, texts) == ("", ["Write it up."])


def test_an_entry_that_is_called_unknown_can_be_called() -> None:
    catalog = {"packs": [make_pack("unknown")]}

    assert make_plan({"steps": [{"tool": "unknown"}]}, catalog=catalog).steps[0].gap is None


def test_a_name_that_fits_two_entries_is_a_gap_that_names_both() -> None:
    catalog = {"packs": [make_pack("a.b"), make_pack("a_b")]}

    found = make_plan({"steps": [{"tool": "A-B"}]}, catalog=catalog).steps[0]

    assert found.gap is not None
    assert found.gap.reason == '"A-B" could be a.b or a_b'
    assert found.gap.suggestions == ("a.b", "a_b")


def test_arguments_that_are_no_object_are_dropped_with_a_fault() -> None:
    found = make_plan({"steps": [{"tool": "fs.read", "args": "a path"}]}).steps[0]

    assert found.args == {}
    assert found.arg_faults == (ArgFault("", "is a text; it must be an object"),)


def test_faults_of_arguments_stay_with_their_step() -> None:
    steps = [{**PUBLISH, "args": {"a": 1}}, {"tool": "builtin.blog", "args": {"brief": 1}}]

    plan = make_plan({"steps": steps}, check_args=all_faulty)

    assert [step.arg_faults[0].field for step in plan.steps] == ["a", "inputs.brief"]


@pytest.mark.parametrize(
    ("step", "field"),
    [
        ({"tool": "fs.read", "arguments": [1]}, ""),
        ({"tool": "builtin.blog", "args": [1]}, "inputs"),
        ({"tool": PIPELINE_RUN, "args": {"id": "builtin.blog", "inputs": [1]}}, "inputs"),
        ({"tool": PIPELINE_RUN, "args": {"id": "fs.read", "inputs": [1]}}, ""),  # a pack
        ({"tool": "nope", "args": [1]}, ""),
    ],
)
def test_a_list_for_arguments_is_told_by_where_it_stood(
    step: dict[str, object], field: str
) -> None:
    found = make_plan({"steps": [step]}).steps[0]

    assert found.arg_faults == (ArgFault(field, "is a list; it must be an object"),)


NEEDY = {
    "packs": [make_pack("mail.send", input_schema={"required": ["to", "text"]})],
    "pipelines": [
        make_pipeline("builtin.deck", metadata={"inputs": {"topic": {"required": True}, "n": {}}})
    ],
}


@pytest.mark.parametrize(
    ("step", "missing"),
    [
        ({"tool": "mail.send"}, ("to", "text")),
        ({"tool": "mail.send", "args": {"to": "${{ steps.1.output.who }}"}}, ("text",)),
        ({"tool": "mail.send", "args": {"to": "a", "text": "b"}}, ()),
        ({"tool": "builtin.deck", "args": {"n": 1}}, ("inputs.topic",)),
        ({"tool": PIPELINE_RUN, "args": {"id": "builtin.deck"}}, ("inputs.topic",)),
        ({"tool": PIPELINE_RUN, "args": {"inputs": {"topic": "t"}}}, ("id",)),
        ({"tool": PIPELINE_RUN, "args": {"id": "builtin.nope"}}, ()),
    ],
)
def test_a_step_tells_what_is_still_to_be_filled_in(
    step: dict[str, object], missing: tuple[str, ...]
) -> None:
    plan = make_plan({"steps": [step]}, catalog=NEEDY)

    assert plan.steps[0].missing_args == missing
    assert plan.steps[0].arg_faults == ()
    if missing and plan.steps[0].gap is None:
        assert f"still to be filled in: {', '.join(missing)}" in plan.rewritten_prompt


def test_a_fault_of_all_arguments_has_no_name() -> None:
    faults = make_plan(
        {"steps": [{**PUBLISH, "args": {"a": 1}}]},
        check_args=lambda schema, args: (ArgFault("", "is not allowed"),),
    )

    assert faults.steps[0].arg_faults == (ArgFault("", "is not allowed"),)


def test_odd_steps_are_told_and_make_the_plan_partial() -> None:
    plan = make_plan({"steps": [None, "fs.read", 3, PUBLISH]})

    assert [step.tool for step in plan.steps] == ["fs.read", "blog.publish"]
    assert plan.partial
    assert plan.notes == (
        "Step 2 was a text instead of an object.",
        "2 steps were no object and left out.",
    )


def test_a_long_plan_is_cut_and_says_so() -> None:
    plan = make_plan({"steps": [READ_A] * (MOST_STEPS + 2)})

    assert (len(plan.steps), plan.partial) == (MOST_STEPS, True)
    assert plan.notes == (f"A plan has at most {MOST_STEPS} steps; 2 steps were left out.",)


@pytest.mark.parametrize(
    ("value", "partial", "rule"),
    [
        ({"steps": []}, False, "plan.no_steps"),
        ({"steps": [None]}, False, "plan.no_steps"),
        ({"steps": [], "done": True}, False, "plan.no_steps"),  # nothing was done before
        ({"steps": []}, True, "plan.cut_off"),
        ({"a": 1}, False, "plan.no_steps"),
    ],
)
def test_a_plan_without_steps_is_refused(value: object, partial: bool, rule: str) -> None:
    assert rule_of(value, partial=partial) == rule


# --- complexity and what is derived ------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "more", "complexity"),
    [
        ([PUBLISH], False, Complexity.SINGLE_ACTION),
        ([{"tool": "builtin.blog"}], False, Complexity.PIPELINE_DIRECT),
        ([PUBLISH, READ_A], False, Complexity.PACK_CHAIN),
        ([{"tool": "builtin.blog"}, READ_A], False, Complexity.PACK_CHAIN),
        ([PUBLISH], True, Complexity.PACK_CHAIN),  # the first step of a chain
        ([{"tool": "nope"}], False, Complexity.SINGLE_ACTION),
    ],
)
@pytest.mark.parametrize("said", ["nonsense", None, "pipeline-direct"])
def test_complexity_follows_the_steps_whatever_the_model_said(
    steps: list[object], more: bool, complexity: Complexity, said: object
) -> None:
    variant = SINGLE if more else FULL

    plan = make_plan({"steps": steps, "complexity": said, "more_steps_likely": more}, variant)

    assert plan.complexity is complexity


def test_no_steps_are_a_single_action() -> None:
    assert complexity_of(()) is Complexity.SINGLE_ACTION
    assert rewrite_prompt("Write.", ()) == ""


def test_the_rewritten_prompt_tells_each_step() -> None:
    steps = [
        {"tool": "fs.read", "args": {"path": "ä"}, "rationale": "the\nnotes"},
        {"tool": "builtin.blog", "args": {}},
        {"tool": "web.scraping"},
    ]

    gap = 'Step 3: nothing to call yet, tool "web.scraping" is not in the catalog.'

    assert make_plan({"steps": steps}, intent=" Write it. ").rewritten_prompt.splitlines() == [
        "Plan for: Write it.",
        'Step 1: call fs.read with args {"path": "ä"} - the notes',
        'Step 2: call helmdeck__pipeline-run with args {"id": "builtin.blog", "inputs": {}}',
        f"{gap} Nearest: web.scrape.",
        "Take the steps in this order. When a tool reports an error, stop and show it.",
    ]


# --- one step at a time ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "more"),
    [
        ({"steps": [PUBLISH], "more_steps_likely": True}, True),
        ({"steps": [PUBLISH], "more_steps_likely": "false"}, False),
        ({"steps": [PUBLISH], "complexity": "pack-chain"}, True),
        ({"steps": [PUBLISH], "complexity": "single-action"}, False),
        ({"steps": [{"tool": "builtin.blog"}], "complexity": "pack-chain"}, False),
        ({"steps": [PUBLISH]}, False),
        # More than it was asked for: there is more to do, whatever it says.
        ({"steps": [PUBLISH, READ_A], "more_steps_likely": False}, True),
    ],
)
def test_one_step_is_kept_and_whether_more_follow(members: object, more: bool) -> None:
    plan = make_plan(members, SINGLE)

    assert (len(plan.steps), plan.more_steps_likely, plan.partial) == (1, more, False)


@pytest.mark.parametrize(
    ("members", "more"),
    [
        ({}, True),  # cut before it could say: asking once too often costs less than half the work
        ({"complexity": "single-action"}, False),
        ({"more_steps_likely": False}, False),
    ],
)
def test_a_pick_that_was_cut_off_may_have_more_behind_it(
    members: dict[str, object], more: bool
) -> None:
    plan = make_plan({"steps": [PUBLISH], **members}, SINGLE, partial=True)

    assert (plan.more_steps_likely, plan.partial) == (more, True)


def test_an_unsaid_promise_and_extra_steps_are_noted() -> None:
    assert "did not say" in make_plan({"steps": [PUBLISH]}, SINGLE).notes[0]
    assert "first step" in make_plan({"steps": [PUBLISH, READ_A]}, SINGLE).notes[0]


@pytest.mark.parametrize("variant", [SINGLE, FULL])
@pytest.mark.parametrize("says", [{"done": True}, {"done": "yes"}, {"more_steps_likely": False}])
def test_a_chain_may_say_that_it_is_done(says: dict[str, object], variant: PromptVariant) -> None:
    plan = make_plan({"steps": [], **says}, variant, completed=[CompletedStep(tool="fs.read")])

    assert (plan.is_done, plan.steps, plan.rewritten_prompt) == (True, (), "")
    assert plan.more_steps_likely is (False if variant is SINGLE else None)


def test_a_chain_that_neither_goes_on_nor_ends_is_refused() -> None:
    assert (
        rule_of({"steps": []}, SINGLE, completed=[CompletedStep(tool="fs.read")]) == "plan.no_steps"
    )


def test_a_step_that_was_taken_is_refused_by_name() -> None:
    completed = [CompletedStep(tool="helmdeck__fs-read", args={"path": "a"})]

    with pytest.raises(UnusablePlan, match=r"fs\.read") as refused:
        make_plan({"steps": [READ_A]}, SINGLE, completed=completed)

    assert refused.value.rule == "plan.repeats_itself"


@pytest.mark.parametrize("tool", ["fs.read", "nope"])
def test_a_chain_without_end_is_refused(tool: str) -> None:
    completed = [CompletedStep(tool="web.scrape", args={"n": n}) for n in range(12)]

    assert (
        rule_of({"steps": [{"tool": tool}]}, SINGLE, completed=completed) == "plan.too_many_steps"
    )


def test_a_whole_plan_may_repeat_a_step() -> None:
    completed = [CompletedStep(tool="fs.read", args={"path": "a"})]

    assert make_plan({"steps": [READ_A]}, FULL, completed=completed).steps


# --- laws --------------------------------------------------------------------------------------

words = st.sampled_from(["steps", "tool", "args", "id", "inputs", "plan", "done", "name", "order"])
tools = st.sampled_from(["fs.read", "builtin.blog", PIPELINE_RUN, "helmdeck.plan", "x", "\0", ""])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | tools | words | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(words | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=20,
)
likely_steps = st.fixed_dictionaries(
    {}, optional={"tool": tools | json_values, "args": json_values, "rationale": json_values}
)
likely_plans = st.fixed_dictionaries(
    {"steps": st.lists(likely_steps | json_values, max_size=4)},
    optional={"done": json_values, "more_steps_likely": json_values, "complexity": json_values},
)
takens = st.lists(
    st.builds(
        CompletedStep,
        tool=tools,
        args=st.none() | st.dictionaries(words, json_values, max_size=2),
    ),
    max_size=3,
)


@settings(max_examples=100, deadline=None)
@given(json_values | likely_plans, st.sampled_from([SINGLE, FULL]), takens, st.booleans())
def test_any_value_becomes_a_plan_or_is_refused(
    value: object, variant: PromptVariant, completed: list[CompletedStep], partial: bool
) -> None:
    try:
        plan = make_plan(value, variant, completed=completed, partial=partial)
    except UnusablePlan:
        return

    assert [step.order for step in plan.steps] == list(range(1, len(plan.steps) + 1))
    assert bool(plan.steps) is not plan.is_done
    assert all((step.entry is None) == (step.gap is not None) for step in plan.steps)
    assert "\0" not in json.dumps(
        [(step.tool, step.args, step.rationale) for step in plan.steps],
        ensure_ascii=False,
        allow_nan=False,
    )


@pytest.mark.parametrize("member", ["args", "tool", "rationale", "more"])
def test_deep_and_huge_values_are_read(member: str) -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    for value in (deep, {"a": deep}, "x" * 1_000_000, "{" * 100_000, {"a": 10**5_000}):
        plan = make_plan({"steps": [{**PUBLISH, member: value}]})

        assert len(plan.steps) == 1


def test_a_hundred_thousand_odd_steps_take_no_time_to_speak_of() -> None:
    plan = make_plan({"steps": [*[None] * 100_000, PUBLISH]})

    assert (len(plan.steps), len(plan.notes)) == (1, 1)
