"""The filter pass: when it is worth a call, what it asks, and how its answer is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.budgets.budgets import Tier
from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.decoding.decoding import decode
from helmdash.core.fitting.doubt import doubt_of
from helmdash.core.fitting.selection import PreparedCatalog, Selection, prepare, select
from helmdash.core.planning.filter_pass import (
    CUT_MARK,
    MAX_PICKS,
    FilterPrompt,
    build_filter_prompt,
    is_picks_shaped,
    read_picks,
)
from helmdash.core.ranking.ranking import PastPlan
from tests.builders import make_budget
from tests.core.catalogs import catalogs, make_catalog, make_pack, make_pipeline, texts

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
DEMO = prepare(parse_catalog(json.loads((FIXTURES / "demo_catalog.json").read_text())))
PASTE = (
    "Aurora 3 is out: an open-weight model with a context of one million tokens. You can try it "
    "in the playground today. Weights follow within ten days.\n\n"
)


def fit(intent: str, room: int, prepared: PreparedCatalog = DEMO, **more: Any) -> Selection:
    budget = make_budget(tier=Tier.C, max_catalog_bytes=room, input_tokens=1_000_000)
    return select(prepared, intent=intent, budget=budget, **more)


def ask(intent: str, room: int = 10_000, prepared: PreparedCatalog = DEMO) -> FilterPrompt:
    order = fit(intent, room, prepared).order
    return build_filter_prompt(prepared, intent=intent, room_bytes=room, order=order)


def lines_of(prompt: FilterPrompt) -> list[str]:
    return prompt.user.split("\n\n")[0].split("\n")[1:]


# --- when it is worth a call -------------------------------------------------------------------


@pytest.mark.parametrize(
    "intent",
    [
        # several requests with several leaders, all of them shown
        "fact check my notes and add citations",
        "remember this fact, then blog, then image",
        PASTE + "Remember this launch, then draft a blog about it, then an illustration.",
        "make a blog post from this PDF",
        "narrated presentation about this repo",
        "take a screenshot of github.com",
        "publish",  # one word, and it names the tool
    ],
)
@pytest.mark.parametrize("room", [3_000, 6_000])
def test_a_request_whose_leaders_are_shown_is_no_doubt(intent: str, room: int) -> None:
    fitted = fit(intent, room)

    assert fitted.trim.removed
    assert fitted.doubt is None
    assert "lexical.low_confidence" not in fitted.trim.dropped


@pytest.mark.parametrize(
    ("intent", "why"),
    [
        ("frobnicate the zorgs with a quux", "hardly tell"),
        ("convert temperature sensor firmware to rust", "hardly tell"),
        ("メールを送って", "hardly tell"),  # another language than the catalog's
        ("do it", "hardly tell"),  # no telling word at all
        ("book a flight to Paris and remember the booking", "1 of 2 parts"),
    ],
)
def test_a_request_that_the_words_do_not_tell_is_a_doubt(intent: str, why: str) -> None:
    fitted = fit(intent, 6_000)

    assert fitted.doubt is not None
    assert why in fitted.doubt.why
    assert fitted.trim.dropped[-1] == "lexical.low_confidence"


def test_leaders_that_are_not_shown_are_a_doubt() -> None:
    packs = [make_pack(f"mail.send_{n}", description="Send a mail.") for n in range(200)]
    many = prepare(parse_catalog({"packs": packs}))

    doubt = fit("send a mail to the team", 2_000, many).doubt

    assert doubt is not None
    assert doubt.share > 0.5
    assert "would not be shown" in doubt.why


def test_where_everything_is_shown_there_is_no_doubt() -> None:
    fitted = fit("frobnicate the zorgs with a quux", 30_000)

    assert not fitted.trim.removed
    assert fitted.doubt is None


def test_a_vague_request_is_a_doubt_where_some_are_shown_by_name_only() -> None:
    clear = fit("take a screenshot of github.com", 10_000)
    vague = fit("help me with my stuff", 10_000)

    assert (clear.doubt, clear.trim.removed) == (None, ())
    assert vague.doubt is not None
    assert vague.trim.removed == ()


def test_a_past_that_knows_the_intent_needs_no_words() -> None:
    intent = "メールを送って"
    past = [PastPlan(intent=intent, tools=("http.fetch",)) for _ in range(3)]

    assert fit(intent, 6_000).doubt is not None
    assert fit(intent, 6_000, history=past).doubt is None


@settings(max_examples=40, deadline=None)
@given(catalog=catalogs(), intent=texts, data=st.data())
def test_doubt_never_fails_and_tells_a_share(
    catalog: dict[str, Any], intent: str, data: st.DataObject
) -> None:
    prepared = prepare(parse_catalog(catalog))
    places = st.integers(0, max(len(prepared.layouts) - 1, 0))
    hidden = data.draw(st.frozensets(places))

    doubt = doubt_of(prepared, intent, hidden=hidden)

    assert doubt is None or (0.0 <= doubt.share <= 1.0 and doubt.why.endswith("."))
    assert hidden or doubt is None


# --- what it asks ------------------------------------------------------------------------------


def test_the_whole_question_is_as_agreed(same_as_golden: Callable[[str, str], None]) -> None:
    catalog = {
        "packs": [
            make_pack(),
            make_pack("helmdeck.memory_store", description="Remember a text."),
            make_pack("helmdeck.plan", description="Plan."),
        ],
        "pipelines": [make_pipeline(description="")],
    }

    found = ask("Remember this, then blog.", prepared=prepare(parse_catalog(catalog)))

    told = f"===== system\n{found.system}\n===== user\n{found.user}\n"
    same_as_golden("prompts/filter.txt", told)


def test_the_question_says_what_it_has_to() -> None:
    found = ask("make a blog post")

    assert found.system.startswith("You are a tool-filter assistant")
    for needle in ("3 to 12", "never make one up", "no prose", "no code fences", '{"ids":'):
        assert needle in found.system
    assert found.user.startswith("AVAILABLE TOOLS:\n1. ")
    assert "\n\nINTENT:\n<user_request>\nmake a blog post\n</user_request>\n\n" in found.user
    assert '{"ids":[numbers]}' in found.user.splitlines()[-1]


def test_every_tool_is_listed_with_its_number_but_the_planner_itself() -> None:
    found = ask("make a blog post")

    entries = {entry.id: entry for entry in DEMO.catalog.entries}
    assert set(found.ids) == set(entries) - {"helmdeck.plan", "helmdeck.route"}
    for number, (id, line) in enumerate(zip(found.ids, lines_of(found), strict=True), start=1):
        assert line.startswith(f"{number}. {id} - ")
        told = line.split(" - ", 1)[1].removesuffix("…")
        assert entries[id].description.startswith(told)


@pytest.mark.parametrize("intent", ["make a blog post", PASTE * 40 + "Remember it."])
def test_eighty_eight_entries_fit_where_a_weak_model_can_read_them(intent: str) -> None:
    prepared = prepare(parse_catalog(make_catalog(packs=58, pipelines=30)))

    found = ask(intent, 10_000, prepared)

    assert len(found.ids) == 88
    assert found.bytes <= 10_000


def test_where_room_is_short_the_least_relevant_are_told_less() -> None:
    intent = "make a blog post from this PDF"
    order = fit(intent, 4_500).order

    found = build_filter_prompt(DEMO, intent=intent, room_bytes=4_500, order=order)

    told = {line.split(" ", 2)[1] for line in lines_of(found) if " - " in line}
    ranks = {DEMO.layouts[at].entry.id: rank for rank, at in enumerate(order)}
    untold = set(found.ids) - told
    assert len(found.ids) == len(DEMO.layouts) - 2
    assert untold
    assert max(ranks[id] for id in told) < min(ranks[id] for id in untold)
    assert 4_300 <= found.bytes <= 4_500


def test_a_long_intent_keeps_both_ends_around_a_mark() -> None:
    intent = f"First, remember this. {PASTE * 100} Last, draw a picture."

    user = ask(intent).user

    asked = user.split("<user_request>\n")[1].split("\n</user_request>")[0]
    assert asked.startswith("First, remember this.")
    assert asked.endswith("Last, draw a picture.")
    assert CUT_MARK in asked
    assert len(asked.encode()) <= 3_000


@settings(max_examples=60, deadline=None)
@given(catalog=catalogs(), intent=texts, room=st.integers(0, 20_000) | st.integers(1_000, 3_000))
def test_the_question_never_breaks_its_room(
    catalog: dict[str, Any], intent: str, room: int
) -> None:
    prepared = prepare(parse_catalog(catalog))

    found = ask(intent, room, prepared)

    assert found.bytes <= room or len(found.ids) <= 1
    assert len(lines_of(found)) == len(found.ids)
    assert bool(found.ids) == bool(prepared.layouts)


# --- how its answer is read --------------------------------------------------------------------

IDS = ("blog.publish", "image.generate", "builtin.blog", "web.scrape")


@pytest.mark.parametrize(
    ("answer", "picked"),
    [
        ({"ids": [1, 3]}, (0, 2)),
        ({"ids": ["1", " 2. ", "#3", "4)"]}, (0, 1, 2, 3)),  # numbers as texts
        ({"ids": ["3. builtin.blog", "2. image.generate - Draws."]}, (2, 1)),  # whole lines
        ({"ids": ["image.generate", "BLOG.publish"]}, (1, 0)),  # by id
        ({"ids": [2, "image.generate", 2.0, "2"]}, (1,)),  # the same one four times
        ({"ids": [{"id": 1}, {"name": "web.scrape"}]}, (0, 3)),
        ({"ids": ["", "  ", None, 1]}, (0,)),
        ({"ids": "1, 4"}, (0, 3)),  # one text of numbers
        ({"picks": [1]}, (0,)),
        ({"tools": ["web.scrape"]}, (3,)),
        ({"ids": {}, "tools": [2]}, (1,)),
        ([4, 1], (3, 0)),  # a bare list
        ({"ids": []}, ()),
        ({}, ()),
        ({"steps": [1]}, ()),
        (None, ()),
        ("1", ()),
        (1, ()),
    ],
)
def test_an_answer_is_read_in_its_own_order(answer: object, picked: tuple[int, ...]) -> None:
    found = read_picks(answer, IDS)

    assert found.ids == tuple(IDS[at] for at in picked)
    assert (found.invented, found.over) == (0, 0)


@pytest.mark.parametrize(
    "made_up",
    [0, -1, 5, 1.5, True, "youtube.upload", "99", "9" * 5_000, [1], {"id": "no"}, {}, float("nan")],
)
def test_what_names_no_entry_is_counted_as_invented(made_up: object) -> None:
    found = read_picks({"ids": [1, made_up]}, IDS)

    assert found.ids == (IDS[0],)
    assert found.invented == 1


def test_picks_are_capped_and_the_rest_is_counted() -> None:
    ids = tuple(f"pack.n{number}" for number in range(40))

    found = read_picks({"ids": [*range(20, 0, -1), 20, 99]}, ids)

    assert found.ids == tuple(ids[number - 1] for number in range(20, 8, -1))
    assert len(found.ids) == MAX_PICKS
    assert (found.over, found.invented) == (8, 1)


@pytest.mark.parametrize(
    ("reply", "picked"),
    [
        # fenced, and with a number twice
        ('```json\n{"ids":[1,2]}\n```', (0, 1)),
        ('Sure, here it is:\n```\n{"ids":["1","1"]}\n```\nHope it helps!', (0,)),
        # thoughts with braces
        ('<think>maybe {"ids":[4]}? no, {1}</think>{"ids":[2]}', (1,)),
        ('[1] is a blog tool. So {"ids":[3,1]}', (2, 0)),
        ('{"ids":[1,2,', (0, 1)),  # cut off
        ("[2,3]", (1, 2)),
    ],
)
def test_a_reply_is_decoded_as_a_plan_is(reply: str, picked: tuple[int, ...]) -> None:
    decoded = decode(reply, accepts=is_picks_shaped, label="filter")

    assert read_picks(decoded.value, IDS).ids == tuple(IDS[at] for at in picked)


@pytest.mark.parametrize("value", [{}, {"steps": []}, [], [{"a": 1}], "x", None, 3, {"ids": "no"}])
def test_other_json_is_no_answer(value: object) -> None:
    assert not is_picks_shaped(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["ids", "id", "tools", "name", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(value=json_values)
def test_any_json_value_gives_picks(value: object) -> None:
    found = read_picks(value, IDS)

    assert set(found.ids) <= set(IDS)
    assert len(set(found.ids)) == len(found.ids)
    assert found.invented >= 0
    assert found.over == 0
    assert is_picks_shaped(value) or found.ids == ()


def test_the_numbers_count_up_without_a_hole() -> None:
    numbers = [re.match(r"(\d+)\. ", line) for line in lines_of(ask("make a blog post"))]

    assert [int(found.group(1)) for found in numbers if found] == list(range(1, 72))
