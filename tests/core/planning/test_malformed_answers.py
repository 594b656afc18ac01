"""Twenty malformed answers of each kind: a plan, a part of one or a typed failure, never less."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.calls.finish import FinishReason, normalise_finish_reason
from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.decoding.decoding import Undecodable
from helmdash.core.planning.plan_reading import decode_plan, read_plan
from helmdash.core.planning.plans import ArgFault, Plan, UnusablePlan
from helmdash.core.planning.route_reading import decode_route, read_route
from tests.core.malformed import CATALOG, TOOLS, WHOLE_PLAN, Expected, Row, plan_rows, route_rows

_CATALOG = parse_catalog(CATALOG)


def no_faults(schema: object, args: object) -> tuple[ArgFault, ...]:
    return ()


def no_ideas(text: str) -> tuple[str, ...]:
    return ()


def _read(value: object, *, partial: bool) -> Plan:
    return read_plan(
        value,
        catalog=_CATALOG,
        variant=PromptVariant.FULL_STEPS,
        intent="Publish it.",
        check_args=no_faults,
        suggest=no_ideas,
        partial=partial,
    )


def name_of(row: Row) -> str:
    return f"{row.kind}: {row.raw[:40]!a}"


@pytest.mark.parametrize("row", plan_rows(), ids=name_of)
def test_a_malformed_plan_comes_to_what_it_can(row: Row) -> None:
    outcome: tuple[Expected, tuple[str, ...]]
    try:
        found = decode_plan(row.raw, finish_reason=normalise_finish_reason(row.finish_reason))
        plan = _read(found.value, partial=found.partial)
    except (Undecodable, UnusablePlan):
        outcome = (Expected.FAILURE, ())
    else:
        ids = tuple(step.entry or step.tool for step in plan.steps)
        outcome = (Expected.PARTIAL if plan.partial else Expected.WHOLE, ids)

    assert outcome == (row.expected, row.ids)


@pytest.mark.parametrize("row", route_rows(), ids=name_of)
def test_a_malformed_route_comes_to_what_it_can(row: Row) -> None:
    outcome: tuple[Expected, tuple[str, ...]]
    try:
        found = decode_route(row.raw, finish_reason=normalise_finish_reason(row.finish_reason))
        route = read_route(
            found.value,
            catalog=_CATALOG,
            intent="Publish it.",
            check_args=no_faults,
            suggest=no_ideas,
            partial=found.partial,
        )
    except (Undecodable, UnusablePlan):
        outcome = (Expected.FAILURE, ())
    else:
        kept = Expected.PARTIAL if route.partial else Expected.WHOLE
        outcome = (kept, (route.recommendation.id,))

    assert outcome == (row.expected, row.ids)


@pytest.mark.parametrize("rows", [plan_rows(), route_rows()], ids=["plan", "route"])
def test_there_are_twenty_rows_of_each_kind(rows: list[Row]) -> None:
    assert set(Counter(row.kind for row in rows).values()) == {20}


def test_wherever_a_plan_is_cut_only_its_own_steps_stay() -> None:
    raw = WHOLE_PLAN
    seen = 0
    for cut in range(len(raw)):
        tools = _tools_of(raw[:cut])
        assert tools == TOOLS[: len(tools)]
        assert len(tools) >= seen  # a longer reply never gives less
        seen = len(tools)

    assert seen == len(TOOLS)


def _tools_of(raw: str) -> tuple[str, ...]:
    try:
        found = decode_plan(raw, finish_reason=FinishReason.LENGTH)
        plan = _read(found.value, partial=found.partial)
    except (Undecodable, UnusablePlan):
        return ()
    assert plan.partial
    return tuple(step.tool for step in plan.steps)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, len(WHOLE_PLAN)),
    st.integers(0, 12),
    st.sampled_from(["", "{", "}", '"', "'", "[", "]", ",", ":", "\\", "```", "</think>", "\0"]),
)
def test_a_damaged_plan_is_read_or_refused(at: int, lost: int, put: str) -> None:
    raw = WHOLE_PLAN[:at] + put + WHOLE_PLAN[at + lost :]

    try:
        found = decode_plan(raw)
        plan = _read(found.value, partial=found.partial)
    except (Undecodable, UnusablePlan):
        return

    assert plan.steps
    assert all(step.entry or step.gap for step in plan.steps)
