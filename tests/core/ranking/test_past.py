"""What past plans add to a ranking: signs that must show, and laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.ranking.history import HALF_LIFE_DAYS, PastPlan, past_scores, similar, sketch_of
from helmdash.core.ranking.history_index import IndexedPlan, read_past
from helmdash.core.ranking.ranking import Ranked, prepare_index, rank
from helmdash.core.text.words import clauses_of


def pack(name: str, description: str = "") -> dict[str, Any]:
    return {"name": name, "description": description}


OFFICE = prepare_index(
    parse_catalog(
        {
            "packs": [
                pack("mail.send", "Send mail."),
                pack("sheet.fill", "Fill a sheet."),
                pack("slides.render", "Render slides."),
                pack("web.read", "Read a page."),
            ]
        }
    )
)
TOOLS = [entry.id for entry in OFFICE.entries] + ["gone.tool"]
BOARD = PastPlan(intent="prepare the board meeting", tools=("slides.render",))
EXPENSES = PastPlan(intent="file my travel expenses", tools=("sheet.fill",))


def hash_word(word: str) -> str:
    """Any function that gives different words different results."""
    return word[::-1] + "!"


def history_of(found: Sequence[Ranked], tool: str) -> float:
    return next(entry.history for entry in found if entry.id == tool)


def sketched(plan: PastPlan) -> PastPlan:
    return replace(plan, intent="", sketch=sketch_of(plan.intent, hash_word))


# Intents that share some words and not others, also pasted and empty ones.
words = st.sampled_from(
    "board meeting travel expenses slides mail page report please prepare read find it".split()
)
intents = st.lists(words, max_size=8).map(" ".join) | st.sampled_from(
    [
        "Please prepare the board meeting. Then send a mail about the report!",
        "The sea was calm.\nThe board met. Find my travel expenses, and read the page.",
        "会議の報告",
        "",
    ]
)
plans = st.builds(
    PastPlan,
    intent=intents,
    tools=st.lists(st.sampled_from(TOOLS), max_size=3).map(tuple),
    age_days=st.none() | st.floats(0, 2_000),
    weight=st.floats(0, 1),
)
histories = st.lists(plans, max_size=8)


# --- signs -------------------------------------------------------------------------------------


def test_a_tool_that_comes_along_with_a_fitting_one_rises() -> None:
    past = [
        PastPlan(intent="the usual for Monday", tools=("slides.render", "web.read")),
        PastPlan(intent="as last Tuesday", tools=("slides.render", "web.read")),
        PastPlan(intent="again, like on Friday", tools=("sheet.fill", "mail.send")),
    ]

    found = rank(OFFICE, "render slides", past)

    # No past intent has a word of this one: only its company speaks for web.read.
    assert found[1].id == "web.read"


def test_what_is_always_picked_comes_before_what_never_was() -> None:
    past = [
        PastPlan(intent=f"weekly job {name}", tools=("web.read",)) for name in ("ada", "bo", "cy")
    ]

    assert rank(OFFICE, "zebra crossing", past)[0].id == "web.read"


def test_words_everybody_uses_make_no_intent_near() -> None:
    common = PastPlan(intent="please help me find information", tools=("web.read",))
    telling = PastPlan(intent="please help me with expenses", tools=("sheet.fill",))

    found = rank(OFFICE, "please help me find the expenses", [common, telling])

    assert history_of(found, "sheet.fill") > history_of(found, "web.read")


def test_one_plan_of_many_tools_says_less_about_each() -> None:
    alone = rank(OFFICE, BOARD.intent, [BOARD])
    among = rank(OFFICE, BOARD.intent, [replace(BOARD, tools=tuple(TOOLS))])

    assert 0 < history_of(among, "slides.render") < history_of(alone, "slides.render")


def test_a_plan_counts_half_after_a_half_life() -> None:
    def vote(age_days: float) -> float:
        old = replace(BOARD, age_days=age_days)
        return history_of(rank(OFFICE, BOARD.intent, [old]), "slides.render")

    assert vote(HALF_LIFE_DAYS) < 0.7 * vote(0)
    assert vote(0) == history_of(rank(OFFICE, BOARD.intent, [BOARD]), "slides.render")
    # A few days are no reason to index a history anew.
    assert vote(1) == vote(0)


def test_an_unconfirmed_plan_counts_less_than_a_followed_one() -> None:
    followed = rank(OFFICE, BOARD.intent, [BOARD])
    unconfirmed = rank(OFFICE, BOARD.intent, [replace(BOARD, weight=0.4)])

    assert 0 < history_of(unconfirmed, "slides.render") < history_of(followed, "slides.render")


def test_a_sketch_keeps_the_clauses_and_hides_every_word() -> None:
    sketch = sketch_of("Please book a boat, then email the crew.", lambda word: f"#{len(word)}")

    assert len(sketch) == 3  # two clauses, and both together
    assert all(word.startswith("#") for query in sketch for word in query)


def test_similar_tells_the_nearest_plans_whatever_they_are_worth() -> None:
    history = [EXPENSES, BOARD, replace(BOARD, weight=0.0, age_days=900.0), EXPENSES]

    found = similar(history, "prepare the board meeting")

    assert [at for at, _ in found] == [2, 1]  # the newer one first; the others share no word
    assert [nearness for _, nearness in found] == [1.0, 1.0]
    assert similar(history, "prepare a board", limit=1)[0][1] < 1


@pytest.mark.parametrize(
    ("history", "intent"),
    [
        ([], "prepare the board meeting"),  # no past
        ([BOARD], ""),  # nothing asked
        ([BOARD], "the of and"),  # no telling word
        ([PastPlan(intent="", tools=("web.read",))], "prepare the board meeting"),  # no words kept
    ],
)
def test_nothing_is_similar_where_there_are_no_words(history: list[PastPlan], intent: str) -> None:
    assert similar(history, intent) == ()


# --- laws --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(history=histories, intent=intents, at=st.integers(0, 7), older_by=st.floats(0, 2_000))
def test_an_older_plan_never_counts_more(
    history: list[PastPlan], intent: str, at: int, older_by: float
) -> None:
    if not history:
        return
    at %= len(history)
    plan = history[at]
    older = replace(plan, age_days=(plan.age_days or 0.0) + older_by)

    before = rank(OFFICE, intent, history)
    after = rank(OFFICE, intent, [*history[:at], older, *history[at + 1 :]])

    for tool in set(plan.tools) & {entry.id for entry in before}:
        assert history_of(after, tool) <= history_of(before, tool) + 1e-5


@settings(max_examples=60, deadline=None)
@given(history=histories, intent=intents, at=st.integers(0, 8), plan=plans)
def test_a_plan_of_weight_0_is_as_if_it_were_not_there(
    history: list[PastPlan], intent: str, at: int, plan: PastPlan
) -> None:
    with_it = [*history[:at], replace(plan, weight=0.0), *history[at:]]

    assert rank(OFFICE, intent, with_it) == rank(OFFICE, intent, history)


@settings(max_examples=60, deadline=None)
@given(history=histories, intent=intents, data=st.data())
def test_hidden_words_rank_as_readable_ones_do(
    history: list[PastPlan], intent: str, data: st.DataObject
) -> None:
    readable = rank(OFFICE, intent, history)

    # Some plans with their text, some with a sketch only, as after a change of the setting.
    mixed = [sketched(plan) if data.draw(st.booleans()) else plan for plan in history]

    assert rank(OFFICE, intent, mixed, hash_word=hash_word) == readable
    assert rank(OFFICE, intent, history, hash_word=hash_word) == readable
    assert similar(mixed, intent, hash_word) == similar(history, intent)


@settings(max_examples=60, deadline=None)
@given(history=histories, intent=intents)
def test_what_the_past_adds_is_bounded_and_repeatable(history: list[PastPlan], intent: str) -> None:
    found = past_scores(history, clauses_of(intent))

    assert found == past_scores(list(history), clauses_of(intent))
    # Votes 0.8, words twice 0.5, company 1.5 times 0.3, habit 0.2.
    assert all(0 <= score < 2.46 for score in found.values())
    assert set(found) <= {tool for plan in history for tool in plan.tools}


def test_the_work_of_a_past_grows_with_what_it_lists_and_not_with_its_square() -> None:
    tools = tuple(f"tool.{n}" for n in range(1_000))
    listed = IndexedPlan(intent="prepare the board meeting", sketch=None, tools=tools, worth=1.0)

    past = read_past((listed, replace(listed, tools=tools[:50])), None)

    # All that a plan of ours can pick go together; of a client's longer list, as many.
    assert [len(others) for others in past.company] == [49] * 50 + [0] * 950
    assert past.company[0][0] == (1, 2 / 3)
    assert {tool for of_stem in past.tool_words.values() for tool, _ in of_stem} == set(
        range(1_000)
    )
