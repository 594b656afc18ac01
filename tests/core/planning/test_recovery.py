"""What is tried after a failure: one table, and the bounds that hold for any row of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.budgets.budgets import EffectiveBudget, PromptVariant, Tier
from helmdash.core.calls.failures import RULES, Advice, Cause, FailureCause
from helmdash.core.planning.prompts import Task
from helmdash.core.planning.recovery import (
    CATALOG_FLOOR_BYTES,
    FILTER_TOKENS,
    MAX_TRIES,
    MOST_OUTPUT_TOKENS,
    THINKING_TOKENS,
    TrySettings,
    filter_tokens,
    first_try,
    next_try,
)
from tests.builders import make_budget

FULL, SINGLE = PromptVariant.FULL_STEPS, PromptVariant.SINGLE_PICK
ADVICE_OF = {rule.name: rule.advice for rule in reversed(RULES)}  # each cause's first rule
ONLY_JSON = "Your last answer could not be read. Answer with the JSON object only."


def cause(name: FailureCause, rule: str = "some.rule", **over: Any) -> Cause:
    given: dict[str, Any] = {"advice": ADVICE_OF[name], "detail": "It went wrong.", **over}
    return Cause(name=name, rule=rule, **given)


def made(**over: Any) -> TrySettings:
    """A first try by a tier C model, changed where the row needs it."""
    begun = TrySettings(
        model="some/model",
        variant=SINGLE,
        json_mode=False,
        max_tokens=1_500,
        catalog_bytes=None,
        note="",
    )
    return replace(begun, **over)


def budget(**over: Any) -> EffectiveBudget:
    tier = over.pop("tier", Tier.C)
    return make_budget(tier=tier, **over)


# --- the first try -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tier", "wants", "json_mode"),
    [
        (Tier.A, True, True),
        (Tier.B, True, True),
        (Tier.C, True, False),  # small models stall in JSON mode
        (Tier.A, False, False),
    ],
)
def test_json_mode_needs_the_rows_wish_and_a_tier_above_c(
    tier: Tier, wants: bool, json_mode: bool
) -> None:
    assert first_try(budget(tier=tier, wants_strict_json=wants)).json_mode is json_mode


@pytest.mark.parametrize(
    ("tier", "override", "variant"),
    [
        (Tier.A, None, FULL),
        (Tier.B, None, FULL),
        (Tier.C, None, SINGLE),
        (Tier.C, FULL, FULL),
        (Tier.A, SINGLE, SINGLE),
    ],
)
def test_the_variant_is_the_tiers_unless_somebody_chose(
    tier: Tier, override: PromptVariant | None, variant: PromptVariant
) -> None:
    assert first_try(budget(tier=tier), variant_override=override).variant is variant


@pytest.mark.parametrize(
    ("is_hybrid", "asked", "tokens"),
    [
        (False, None, 1_500),
        (True, None, 1_500 + THINKING_TOKENS),
        (True, 700, 700),  # the caller's word counts, whatever the model is
        (False, 9_000, 9_000),
        (False, 0, 1_500),
        (False, -5, 1_500),
    ],
)
def test_the_output_is_the_callers_or_the_budgets_with_room_to_think(
    is_hybrid: bool, asked: int | None, tokens: int
) -> None:
    begun = first_try(budget(is_hybrid_reasoning=is_hybrid), max_tokens=asked)

    assert begun.max_tokens == tokens
    assert (begun.model, begun.catalog_bytes, begun.note) == ("some/model", None, "")


@pytest.mark.parametrize(
    ("output", "is_hybrid", "tokens"),
    [
        (1_500, False, FILTER_TOKENS),  # B13: 600 cut two of three
        (4_000, True, FILTER_TOKENS + THINKING_TOKENS),
        (1_024, False, 1_024),  # a local model with a small window
    ],
)
def test_a_filter_has_room_to_think(output: int, is_hybrid: bool, tokens: int) -> None:
    assert filter_tokens(budget(output_tokens=output, is_hybrid_reasoning=is_hybrid)) == tokens


# --- one table ---------------------------------------------------------------------------------

C = FailureCause
BIG, SMALL = 10_000, CATALOG_FLOOR_BYTES


@pytest.mark.parametrize(
    ("name", "given", "rows", "changes"),
    [
        # cut off: one step instead of all; then more output, up to a bound, half the window
        (C.LENGTH_TRUNCATED, {"variant": FULL}, {}, {"variant": SINGLE}),
        (C.LENGTH_TRUNCATED, {}, {}, {"max_tokens": 3_000}),
        (C.LENGTH_TRUNCATED, {"max_tokens": 5_000}, {}, {"max_tokens": MOST_OUTPUT_TOKENS}),
        (C.LENGTH_TRUNCATED, {"max_tokens": 9_000}, {}, None),
        (C.LENGTH_TRUNCATED, {}, {"context_length": 4_096}, {"max_tokens": 2_048}),
        (C.LENGTH_TRUNCATED, {"max_tokens": 2_048}, {"context_length": 4_096}, None),
        # all of it thoughts: both at once
        (C.REASONING_EXHAUSTED, {"variant": FULL}, {}, {"variant": SINGLE, "max_tokens": 3_000}),
        (C.REASONING_EXHAUSTED, {}, {}, {"max_tokens": 3_000}),
        (C.REASONING_EXHAUSTED, {"variant": FULL, "max_tokens": 9_000}, {}, {"variant": SINGLE}),
        # no usable JSON: without its mode, then one step, then half the catalog and a word
        (C.CONSTRAINED_DEADLOCK, {"json_mode": True, "variant": FULL}, {}, {"json_mode": False}),
        (C.CONSTRAINED_DEADLOCK, {"variant": FULL}, {}, {"variant": SINGLE}),
        (C.CONSTRAINED_DEADLOCK, {}, {}, {"catalog_bytes": 5_000, "note": ONLY_JSON}),
        (C.CONSTRAINED_DEADLOCK, {"note": ONLY_JSON}, {}, {"catalog_bytes": 5_000}),
        (C.UNDECODABLE, {"json_mode": True}, {}, {"json_mode": False}),
        (C.UNDECODABLE, {}, {}, {"catalog_bytes": 5_000, "note": ONLY_JSON}),
        (C.UNDECODABLE, {"note": "Other."}, {}, {"catalog_bytes": 5_000, "note": ONLY_JSON}),
        # nothing came: half the catalog, down to a floor; then the other model
        (C.LIKELY_TIMEOUT, {}, {}, {"catalog_bytes": 5_000}),
        (C.EMPTY_COMPLETION, {}, {}, {"catalog_bytes": 5_000}),
        (C.TIMED_OUT, {}, {"fallback_model": "other/one"}, {"catalog_bytes": 5_000}),
        (C.CONTEXT_OVERFLOW, {}, {}, {"catalog_bytes": 5_000}),
        # fallback: the configured model, once
        (C.RATE_LIMITED, {}, {"fallback_model": "other/one"}, {"model": "other/one"}),
        (C.UNREACHABLE, {}, {"fallback_model": "other/one"}, {"model": "other/one"}),
        (C.UPSTREAM_ERROR, {}, {"fallback_model": "other/one"}, {"model": "other/one"}),
        (C.RATE_LIMITED, {}, {}, None),
        # an error inside of a 200: the transport did not see it, so the same once more
        (C.UPSTREAM_ERROR_IN_200, {}, {}, {}),
        (C.UPSTREAM_ERROR_IN_200, {}, {"fallback_model": "other/one"}, {}),
        (C.RATE_LIMITED, {}, {"fallback_model": " Some/Model "}, None),  # that is itself
        # surfaced, whatever is configured
        (C.SAFETY_FILTERED, {}, {"fallback_model": "other/one"}, None),
        (C.REFUSED, {}, {"fallback_model": "other/one"}, None),
        (C.AUTH_FAILED, {}, {"fallback_model": "other/one"}, None),
        (C.BAD_REQUEST, {}, {"fallback_model": "other/one"}, None),
        (C.CLIENT_DISCONNECTED, {}, {"fallback_model": "other/one"}, None),
    ],
)
def test_each_cause_has_its_next_try(
    name: FailureCause,
    given: dict[str, Any],
    rows: dict[str, Any],
    changes: dict[str, Any] | None,
) -> None:
    failed = made(**given)
    advice = Advice.SURFACE if name is C.BAD_REQUEST else Advice.RETRY

    found = next_try(
        failed,
        cause(name, advice=advice),
        budget=budget(**rows),
        catalog_bytes=BIG,
        tried=[failed],
    )

    if changes is None:
        assert found is None
        return
    assert found is not None
    assert found[0] == replace(failed, **changes)
    assert found[1].endswith(".")


@pytest.mark.parametrize(
    ("sent", "asked"),
    [
        (35_000, 17_500),
        (6_000, 3_000),
        (4_000, SMALL),
        (SMALL * 4 // 3 + 1, SMALL),
        (SMALL, None),  # small already: a little less would be the same prompt
        (0, None),
    ],
)
def test_a_catalog_is_halved_down_to_a_floor(sent: int, asked: int | None) -> None:
    found = next_try(
        made(),
        cause(C.LIKELY_TIMEOUT),
        budget=budget(),
        catalog_bytes=sent,
        tried=[],
    )

    assert (found[0].catalog_bytes if found else None) == asked


def follow(
    names: list[FailureCause], rows: EffectiveBudget, *, sent: int, **given: Any
) -> list[TrySettings]:
    """All tries of a story whose tries fail by these causes; what is sent fills its cap."""
    tried = [made(**given)]
    for name in names:
        found = next_try(tried[-1], cause(name), budget=rows, catalog_bytes=sent, tried=tried)
        if found is None:
            break
        sent = found[0].catalog_bytes or sent
        tried.append(found[0])
    return tried


@pytest.mark.parametrize(
    ("names", "sent", "sizes", "notes"),
    [
        # JSON only below some size
        ([C.UNDECODABLE] * 3, 10_000, [None, 5_000, 2_500], ["", ONLY_JSON, ONLY_JSON]),
        ([C.CONSTRAINED_DEADLOCK] * 3, 9_000, [None, 4_500, 2_500], ["", ONLY_JSON, ONLY_JSON]),
        # silent above one size, in prose above the next
        ([C.EMPTY_COMPLETION, C.UNDECODABLE], 10_000, [None, 5_000, 2_500], ["", "", ONLY_JSON]),
        ([C.UNDECODABLE, C.TIMED_OUT], 10_000, [None, 5_000, 2_500], ["", ONLY_JSON, ONLY_JSON]),
        # small already: the word alone
        ([C.UNDECODABLE] * 3, SMALL, [None, None], ["", ONLY_JSON]),
    ],
)
def test_a_model_that_answers_in_prose_gets_less_to_read_each_time(
    names: list[FailureCause], sent: int, sizes: list[int | None], notes: list[str]
) -> None:
    tried = follow(names, budget(), sent=sent)

    assert [each.catalog_bytes for each in tried] == sizes
    assert [each.note for each in tried] == notes


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        # the catalog goes last, with the last try
        ({}, [{"note": ONLY_JSON}, {"note": ONLY_JSON, "catalog_bytes": 30_000}]),
        (
            {"variant": FULL},
            [{}, {"note": ONLY_JSON, "catalog_bytes": 30_000}],
        ),
        (
            {"json_mode": True},
            [{}, {"note": ONLY_JSON, "catalog_bytes": 30_000}],
        ),
        ({"json_mode": True, "variant": FULL}, [{"variant": FULL}, {}]),
    ],
)
def test_a_model_without_a_catalog_cap_keeps_its_catalog_until_the_last_try(
    given: dict[str, Any], changes: list[dict[str, Any]]
) -> None:
    rows = budget(tier=Tier.B, max_catalog_bytes=0)

    tried = follow([C.UNDECODABLE] * 3, rows, sent=60_000, **given)

    assert tried == [made(**given), *(made(**each) for each in changes)]


@pytest.mark.parametrize("other", ["", "other/one"])
def test_an_error_inside_of_a_reply_is_asked_again_once_and_then_of_another(other: str) -> None:
    rows = budget(fallback_model=other)

    tried = follow([C.UPSTREAM_ERROR_IN_200] * 3, rows, sent=BIG)

    assert [each.model for each in tried] == ["some/model"] * 2 + ([other] if other else [])
    assert tried[0] == tried[1]


def test_the_same_is_asked_once_more_in_a_story_not_in_each_of_its_tries() -> None:
    failed = [C.UPSTREAM_ERROR_IN_200, C.UNDECODABLE, C.UPSTREAM_ERROR_IN_200]
    later = follow([C.UNDECODABLE, C.UPSTREAM_ERROR_IN_200], budget(), sent=BIG)

    assert [each.catalog_bytes for each in follow(failed, budget(), sent=BIG)] == [
        None,
        None,
        5_000,
    ]
    assert [each.catalog_bytes for each in later] == [None, 5_000, 5_000]


@pytest.mark.parametrize(
    "names",
    [
        [C.EMPTY_COMPLETION] * 3,
        [C.UNDECODABLE] * 3,
        [C.CONSTRAINED_DEADLOCK] * 3,
        [C.LIKELY_TIMEOUT, C.UNDECODABLE, C.TIMED_OUT],
    ],
)
def test_the_last_try_goes_to_the_configured_fallback(names: list[FailureCause]) -> None:
    tried = follow(names, budget(fallback_model="other/one"), sent=20_000)

    assert [each.model for each in tried] == ["some/model", "some/model", "other/one"]


def test_a_small_catalog_that_times_out_goes_to_the_fallback() -> None:
    found = next_try(
        made(),
        cause(C.LIKELY_TIMEOUT),
        budget=budget(fallback_model="other/one"),
        catalog_bytes=SMALL,
        tried=[],
    )

    assert found is not None
    assert found[0].model == "other/one"
    assert "other/one" in found[1]


def test_a_model_that_thinks_for_ever_is_not_asked_again_where_there_is_another() -> None:
    thinking = cause(C.TIMED_OUT, "timeout.reasoning", advice=Advice.OTHER_MODEL)

    with_other = next_try(
        made(),
        thinking,
        budget=budget(fallback_model="other/one"),
        catalog_bytes=BIG,
        tried=[],
    )
    alone = next_try(made(), thinking, budget=budget(), catalog_bytes=BIG, tried=[])

    assert with_other is not None
    assert with_other[0].model == "other/one"
    assert alone is not None
    assert alone[0].catalog_bytes == BIG // 2


def test_an_empty_plan_is_told_once_what_was_wrong() -> None:
    empty = cause(C.EMPTY_PLAN, detail="The plan\nhas no steps.")

    first = next_try(made(), empty, budget=budget(), catalog_bytes=BIG, tried=[])
    assert first is not None
    assert first[0].note == "Your last answer could not be used: The plan has no steps."

    assert next_try(first[0], empty, budget=budget(), catalog_bytes=BIG, tried=[made()]) is None
    surfaced = replace(empty, advice=Advice.SURFACE)
    assert next_try(made(), surfaced, budget=budget(), catalog_bytes=BIG, tried=[]) is None


@pytest.mark.parametrize(
    ("rule", "advice", "given", "changes"),
    [
        ("request.json_mode", Advice.WITHOUT_JSON_MODE, {"json_mode": True}, {"json_mode": False}),
        ("request.json_mode", Advice.WITHOUT_JSON_MODE, {}, None),
        ("request.model", Advice.OTHER_MODEL, {}, {"model": "other/one"}),
        ("request.payment", Advice.FIX_CREDENTIALS, {}, None),
    ],
)
def test_a_bad_request_is_repeated_only_without_what_was_refused(
    rule: str, advice: Advice, given: dict[str, Any], changes: dict[str, Any] | None
) -> None:
    found = next_try(
        made(**given),
        cause(C.BAD_REQUEST, rule, advice=advice),
        budget=budget(fallback_model="other/one"),
        catalog_bytes=BIG,
        tried=[],
    )

    wanted = replace(made(**given), **changes) if changes else None
    assert (found[0] if found else None) == wanted


def test_nothing_is_tried_while_helmdash_is_stopped() -> None:
    stopped = cause(C.UNREACHABLE, "gateway.stopped")
    rows = budget(fallback_model="other/one")

    assert next_try(made(), stopped, budget=rows, catalog_bytes=BIG, tried=[]) is None


def test_a_route_has_no_variant_to_change() -> None:
    failed = made(variant=FULL)

    cut = next_try(
        failed,
        cause(C.LENGTH_TRUNCATED),
        budget=budget(),
        catalog_bytes=BIG,
        tried=[],
        task=Task.ROUTE,
    )

    assert cut is not None
    assert cut[0] == replace(failed, max_tokens=3_000)


def test_a_fallback_begins_as_its_own_budget_has_it() -> None:
    rows = budget(fallback_model="other/one")
    other = budget(tier=Tier.A, wants_strict_json=True, output_tokens=4_000)
    other = replace(other, model="other/one")
    failed = first_try(rows)

    found = next_try(
        failed,
        cause(C.RATE_LIMITED),
        budget=rows,
        catalog_bytes=BIG,
        tried=[failed],
        fallback=other,
    )

    assert found is not None
    assert found[0] == TrySettings(
        model="other/one",
        variant=FULL,
        json_mode=True,
        max_tokens=4_000,
        catalog_bytes=None,
        note="",
    )


def test_what_the_caller_chose_holds_for_the_fallback_too() -> None:
    rows = budget(fallback_model="other/one")
    other = replace(budget(tier=Tier.A), model="other/one")
    failed = first_try(rows, variant_override=FULL, max_tokens=700)

    found = next_try(
        failed,
        cause(C.UNREACHABLE),
        budget=rows,
        catalog_bytes=BIG,
        tried=[failed],
        fallback=replace(other, prompt_variant=SINGLE),
    )

    assert found is not None
    assert (found[0].variant, found[0].max_tokens) == (FULL, 700)


# --- bounds ------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    names=st.lists(st.sampled_from(FailureCause), min_size=5, max_size=5),
    tier=st.sampled_from(Tier),
    strict=st.booleans(),
    hybrid=st.booleans(),
    fallback=st.sampled_from(["", "other/one", "some/model"]),
    max_tokens=st.none() | st.integers(1, 20_000),
    task=st.sampled_from(Task),
)
def test_tries_are_few_and_different_and_never_ask_for_less_than_the_caller(
    names: list[FailureCause],
    tier: Tier,
    strict: bool,
    hybrid: bool,
    fallback: str,
    max_tokens: int | None,
    task: Task,
) -> None:
    rows = budget(
        tier=tier,
        wants_strict_json=strict,
        is_hybrid_reasoning=hybrid,
        fallback_model=fallback,
    )
    sent = 35_000
    tried = [first_try(rows, max_tokens=max_tokens)]
    for name in names:
        found = next_try(
            tried[-1], cause(name), budget=rows, catalog_bytes=sent, tried=tried, task=task
        )
        if found is None:
            break
        sent = found[0].catalog_bytes or sent
        tried.append(found[0])

    assert len(tried) <= MAX_TRIES
    # An error inside of a reply is the one reason to ask the same again, and only once.
    repeats = C.UPSTREAM_ERROR_IN_200 in names[: len(tried) - 1]
    assert len(tried) - len(set(tried)) <= repeats
    assert len({one.model for one in tried}) <= 2
    assert all(one.max_tokens >= tried[0].max_tokens for one in tried)
