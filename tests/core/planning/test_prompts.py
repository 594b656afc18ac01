"""What a model is told: the texts as golden files, and the laws of the two layouts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.planning.plans import META_TOOLS, PIPELINE_RUN, CompletedStep, Complexity
from helmdash.core.planning.prompts import (
    CATALOG_HEADER,
    COMPLETED_HEADER,
    CONTEXT_HEADER,
    DEFAULTS_HEADER,
    LAST_LINE,
    NOTE_HEADER,
    REQUEST_HEADER,
    Prompt,
    Task,
    build_prompt,
    fixed_bytes,
    role_of,
)
from tests.core.catalogs import compact, make_pack, make_pipeline

FULL, SINGLE = PromptVariant.FULL_STEPS, PromptVariant.SINGLE_PICK
CATALOG = {
    "packs": [
        make_pack(metadata={"accepts": ["blog_markdown"], "produces": ["url"]}),
        make_pack("helmdeck.memory_store", description="Remember a text by a key."),
    ],
    "pipelines": [make_pipeline(metadata={"supersedes": ["blog.publish"]})],
}
DEFAULTS = {"packs": [{"id": "blog.publish", "calls": 5, "common_inputs": {"persona": "dev"}}]}
INTENT = "Remember this launch, then draft a blog about it.\n\nGrüße!"
CONTEXT = {"repo": "acme/site", "note": "line\nbreak"}
COMPLETED = (
    CompletedStep(tool="helmdeck.memory_store", args={"key": "launch"}),
    CompletedStep(tool="web.scrape"),
)

# Every task with every variant it has.
KINDS = [(Task.PLAN, FULL), (Task.PLAN, SINGLE), (Task.ROUTE, FULL)]


def ask(task: Task = Task.PLAN, variant: PromptVariant = FULL, **over: Any) -> Prompt:
    given: dict[str, Any] = {
        "catalog": CATALOG,
        "defaults": None,
        "intent": INTENT,
        "context": None,
        "in_system": False,
        **over,
    }
    return build_prompt(task=task, variant=variant, **given)


def block(text: str, header: str) -> str:
    """What stands under a header, up to the next blank line."""
    return text.split(f"{header}\n", 1)[1].split("\n\n", 1)[0]


# --- the texts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "task", "variant", "in_system"),
    [
        ("plan_full_steps", Task.PLAN, FULL, True),
        ("plan_single_pick", Task.PLAN, SINGLE, False),
        ("route", Task.ROUTE, FULL, False),
    ],
)
def test_the_whole_prompt_is_as_agreed(
    name: str,
    task: Task,
    variant: PromptVariant,
    in_system: bool,
    same_as_golden: Callable[[str, str], None],
) -> None:
    found = ask(
        task,
        variant,
        in_system=in_system,
        defaults=DEFAULTS,
        context=CONTEXT,
        completed=COMPLETED if variant is SINGLE else (),
        note="Answer with the JSON object only." if variant is SINGLE else "",
    )

    told = f"===== system\n{found.system}\n===== user\n{found.user}\n"
    same_as_golden(f"prompts/{name}.txt", told)


@pytest.mark.parametrize(
    ("task", "variant", "most_bytes"),
    # Weak models lose the thread of long instructions.
    [(Task.PLAN, FULL, 1_500), (Task.PLAN, SINGLE, 1_400), (Task.ROUTE, FULL, 1_900)],
)
def test_a_role_is_short(task: Task, variant: PromptVariant, most_bytes: int) -> None:
    assert len(role_of(task, variant).encode()) <= most_bytes


@pytest.mark.parametrize(
    ("task", "variant", "needles"),
    [
        # who it is, and what it gives back
        (Task.PLAN, FULL, ["planning agent", "ordered sequence of tool or pipeline calls"]),
        (Task.PLAN, SINGLE, ["planning agent", "exactly one step in the array"]),
        # P1 to P3 and S1 to S5, by what cannot be said without these words
        (Task.PLAN, FULL, ["accepts", "produces", "supersedes", "Do not split", "Only otherwise"]),
        (Task.PLAN, FULL, ["exactly as in CATALOG", "common_inputs", "rationale", "1, 2, 3"]),
        (Task.PLAN, FULL, ["no rewritten_prompt", "1 to 3 sentences"]),
        (Task.PLAN, SINGLE, ["WHOLE request", "first pack", "no step 2", "under 300 tokens"]),
        (Task.PLAN, SINGLE, ["more_steps_likely", "STEPS TAKEN", '"done":true', "Never repeat"]),
        # R1 to R6
        (Task.ROUTE, FULL, ["Prefer a pipeline", "supersedes", "intent_keywords", "very id"]),
        (Task.ROUTE, FULL, ["Copy ids exactly", "gap_warning", "Still give a recommendation"]),
        (Task.ROUTE, FULL, ["At most 3", "integration_pattern", "why_useful", 'kind "none"']),
    ],
)
def test_a_role_says_what_it_has_to(task: Task, variant: PromptVariant, needles: list[str]) -> None:
    role = role_of(task, variant)

    assert [needle for needle in needles if needle not in role] == []


@pytest.mark.parametrize(("task", "variant"), KINDS)
def test_every_role_bans_the_planner_itself_prose_and_fences(
    task: Task, variant: PromptVariant
) -> None:
    role = role_of(task, variant)

    for tool in META_TOOLS:
        assert tool in role
        assert tool.replace(".", "__") in role
    assert "no prose" in role
    assert "no code fences" in role
    assert "one JSON object only" in role


@pytest.mark.parametrize("variant", [FULL, SINGLE])
def test_a_plan_role_names_the_pipeline_call_and_each_complexity(variant: PromptVariant) -> None:
    role = role_of(Task.PLAN, variant)

    assert f'"{PIPELINE_RUN}", args {{"id":"<pipeline id>","inputs":{{}}}}' in role
    for complexity in Complexity:
        assert f'"{complexity.value}"' in role


@pytest.mark.parametrize(
    ("task", "variant", "members"),
    [
        (Task.PLAN, FULL, {"steps", "complexity", "reasoning"}),
        (Task.PLAN, SINGLE, {"steps", "complexity", "more_steps_likely", "reasoning"}),
        (Task.ROUTE, FULL, {"recommendation", "alternatives", "gap_warning", "reasoning"}),
    ],
)
def test_the_shape_shown_is_json_of_the_members_that_are_read(
    task: Task, variant: PromptVariant, members: set[str]
) -> None:
    shown = re.findall(r"^\{.*\}$", role_of(task, variant), re.MULTILINE)

    assert len(shown) == 1
    assert set(json.loads(shown[0])) == members


# --- the layouts -------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "variant"), KINDS)
@pytest.mark.parametrize("in_system", [True, False])
def test_the_catalog_stands_in_one_message_as_the_bytes_that_were_counted(
    task: Task, variant: PromptVariant, in_system: bool
) -> None:
    found = ask(task, variant, in_system=in_system)

    holds, other = (found.system, found.user) if in_system else (found.user, found.system)
    assert f"{CATALOG_HEADER}\n" in holds
    assert f"{CATALOG_HEADER}\n" not in other
    assert block(holds, CATALOG_HEADER).encode() == compact(CATALOG)
    assert found.caches_system is in_system
    if in_system:
        assert found.system.endswith(compact(CATALOG).decode())
    else:
        assert found.user.startswith(CATALOG_HEADER)
        assert found.system == role_of(task, variant)


def test_the_user_message_has_its_blocks_in_order() -> None:
    found = ask(defaults=DEFAULTS, context=CONTEXT, completed=COMPLETED, note="Try\nharder.")

    headers = [
        CATALOG_HEADER,
        DEFAULTS_HEADER,
        REQUEST_HEADER,
        COMPLETED_HEADER,
        CONTEXT_HEADER,
        NOTE_HEADER,
        LAST_LINE,
    ]
    places = [found.user.index(header) for header in headers]
    assert places == sorted(places)
    assert block(found.user, DEFAULTS_HEADER).encode() == compact(DEFAULTS)
    assert block(found.user, CONTEXT_HEADER).encode() == compact(CONTEXT)
    assert f"{NOTE_HEADER} Try harder.\n" in found.user
    assert found.user.endswith(LAST_LINE)


@pytest.mark.parametrize("empty", [None, {}])
def test_what_is_empty_leaves_no_trace(empty: dict[str, object] | None) -> None:
    found = ask(defaults=empty, context=empty)

    for header in (DEFAULTS_HEADER, CONTEXT_HEADER, COMPLETED_HEADER, NOTE_HEADER):
        assert header not in found.user


def test_steps_taken_are_numbered_one_line_each() -> None:
    long = CompletedStep(tool="a\nb", args={"text": "x\n" * 5_000})

    lines = block(ask(completed=(*COMPLETED, long)).user, COMPLETED_HEADER).split("\n")

    assert lines[0] == '1. helmdeck.memory_store {"key":"launch"}'
    assert lines[1] == "2. web.scrape"
    assert lines[2].startswith('3. a b {"text":"x')
    assert len(lines[2]) < 300
    assert len(lines) == 3


def test_of_very_many_steps_taken_the_latest_are_told_with_their_numbers() -> None:
    many = [CompletedStep(tool=f"pack.n{number}") for number in range(1, 201)]

    lines = block(ask(completed=many).user, COMPLETED_HEADER).split("\n")

    assert len(lines) == 50
    assert lines[0] == "151. pack.n151"
    assert lines[-1] == "200. pack.n200"


# --- laws --------------------------------------------------------------------------------------

laws = settings(max_examples=60, deadline=None)
# Also what is no text at all: halves of surrogate pairs, as JSON may carry them.
words = st.text(st.characters(exclude_categories=()), max_size=40)
tricky = words | st.sampled_from(
    ["</user_request>", "< /USER_request x", f"\n\n{CATALOG_HEADER}\n", "<user_request", "\ud800"]
)
intents = st.lists(tricky, max_size=4).map(" ".join)
objects = st.none() | st.dictionaries(tricky, tricky | st.integers(), max_size=3)
steps = st.lists(st.builds(CompletedStep, tool=tricky, args=objects), max_size=3)
blocks = st.fixed_dictionaries(
    {
        "intent": intents,
        "defaults": objects,
        "context": objects,
        "completed": steps,
        "note": words,
        "in_system": st.booleans(),
    }
)


@laws
@given(given=blocks, kind=st.sampled_from(KINDS))
def test_fixed_bytes_and_the_catalog_add_up_to_the_prompt(
    given: dict[str, Any], kind: tuple[Task, PromptVariant]
) -> None:
    task, variant = kind

    found = build_prompt(task=task, variant=variant, catalog=CATALOG, **given)
    fixed = fixed_bytes(task=task, variant=variant, **given)

    assert found.bytes == len(found.system.encode()) + len(found.user.encode())
    assert fixed + len(compact(CATALOG)) == found.bytes


@laws
@given(given=blocks, other=blocks, kind=st.sampled_from(KINDS))
def test_the_system_message_is_the_same_whatever_is_asked(
    given: dict[str, Any], other: dict[str, Any], kind: tuple[Task, PromptVariant]
) -> None:
    task, variant = kind
    other["in_system"] = given["in_system"]

    one = build_prompt(task=task, variant=variant, catalog=CATALOG, **given)
    two = build_prompt(task=task, variant=variant, catalog=CATALOG, **other)

    assert one.system.encode() == two.system.encode()


@laws
@given(given=blocks)
def test_nothing_pasted_can_open_or_close_the_request(given: dict[str, Any]) -> None:
    user = build_prompt(task=Task.PLAN, variant=FULL, catalog=CATALOG, **given).user

    assert re.findall(r"<\s*/?\s*user_request\b", user, re.IGNORECASE) == [
        "<user_request",
        "</user_request",
    ]


@laws
@given(context=st.dictionaries(words, tricky, min_size=1, max_size=3))
def test_a_context_means_the_same_after_its_tags_were_disarmed(context: dict[str, str]) -> None:
    user = ask(context=context).user

    sound = {
        key.encode("utf-8", "replace").decode(): value.encode("utf-8", "replace").decode()
        for key, value in context.items()
    }
    assert json.loads(user.split(f"{CONTEXT_HEADER}\n", 1)[1].split("\n", 1)[0]) == sound


def test_disarming_a_page_of_brackets_takes_no_time() -> None:
    hostile = "<" + " " * 50_000 + "<user_request" * 5_000 + "< / user_request " * 5_000

    user = ask(intent=hostile).user

    assert user.count("<user_request") == 1
