"""What fills a prompt, as it is drawn and told; unknown is grey, and never zero."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from django.test import Client

from helmdash.core.budgets.levels import Level
from helmdash.core.calls.composition import Composition
from helmdash.core.calls.lanes import Lane
from helmdash.pages.parts.charts.composition import IMAGE_WEIGHT, fill_rows, growth, stack
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations.curve import CurvePoint
from tests.factories import NOW, make_capture, record
from tests.pages.hygiene import faults

BEFORE = Composition(
    system=100, tools=50, user=10, assistant=40, tool_results=200, images=0, other=0,
    results_by_tool={"read": 150, "bash": 50},
)  # fmt: skip
NOW_FULL = replace(
    BEFORE, assistant=30, tool_results=900, results_by_tool={"read": 150, "bash": 50, "web": 700}
)


def point(generation: int, told: Composition | None) -> CurvePoint:
    return CurvePoint(
        generation=generation, round_number=1, call_id=f"c{generation}", model="m",
        prompt_tokens=1_000, level=Level.HEALTHY, limit_tokens=None, optimal_max_tokens=None,
        critical_max_tokens=None, is_trimmed=False, cause=None, at=NOW, composition=told, images=0,
    )  # fmt: skip


def test_each_kind_has_its_share_and_its_change() -> None:
    rows = {row.name: row for row in fill_rows(NOW_FULL, 0, BEFORE, 0)}

    assert (rows["System"].size, rows["System"].change) == (100, 0)
    assert (rows["Assistant"].change, rows["Tool results"].change) == (-10, 700)
    # A tool that was not among fewer than are kept had no results then.
    assert (rows["web"].is_part, rows["web"].change) == (True, 700)
    assert sum(row.share or 0 for row in rows.values() if not row.is_part) == pytest.approx(1)
    assert growth(rows.values()) == "+690 bytes: tool results +700 (web +700), assistant \u221210."
    assert growth(fill_rows(BEFORE, 0, BEFORE, 0)) == "As large as the call before."


def test_what_is_not_known_is_neither_zero_nor_a_change() -> None:
    partly = Composition(system=100, user=10)

    rows = {row.name: row for row in fill_rows(partly, None, None, None)}

    assert (rows["Assistant"].size, rows["Assistant"].share) == (None, None)
    assert rows["System"].share == pytest.approx(100 / 110)
    assert {row.change for row in rows.values()} == {None}
    assert growth(rows.values()) == ""
    assert fill_rows(None, 3) == ()


def test_an_image_weighs_what_it_takes_and_not_its_bytes() -> None:
    told = replace(BEFORE, images=4_000_000)

    sizes = [{row.name: row.size for row in fill_rows(told, n)}["Images"] for n in (2, None)]

    assert sizes == [2 * IMAGE_WEIGHT, IMAGE_WEIGHT]


def test_columns_stack_to_the_top_and_gaps_stand_where_nothing_is_known() -> None:
    points = [point(1, BEFORE), point(2, None), point(3, NOW_FULL)]

    drawn = stack(points, width=380, height=120, as_share=True)

    assert drawn is not None
    assert [layer.kind for layer in drawn.layers] == [
        "system", "tools", "user", "assistant", "tool_results",
    ]  # fmt: skip
    (gap,) = drawn.gaps
    assert gap[0] == drawn.columns[1].at
    # The layers of a column leave no room between them: shares fill it.
    tops = [min(float(y) for y in re.findall(r"V([\d.]+)", each.path)) for each in drawn.layers]
    assert min(tops) == drawn.top
    assert drawn.columns[1].text == "Generation 2: not reported"
    assert stack([point(1, None)], width=380, height=120, as_share=False) is None


def test_thousands_of_generations_are_drawn_in_columns_that_can_be_seen() -> None:
    points = [point(number, BEFORE) for number in range(1, 1_000)]

    drawn = stack(points, width=940, height=190, as_share=False)

    assert drawn is not None
    assert len(drawn.columns) <= 132
    assert drawn.columns[-1].text.startswith("Generation 999:")


def told_at(client: Client, address: str) -> str:
    html = client.get(address).content.decode()
    assert faults(html) == []
    return " ".join(unescape(re.sub(r"<title>.*?</title>|<[^>]+>", " ", html)).split())


def test_pages_tell_what_fills_a_prompt_and_what_grew(owner: Client, project: ProjectInfo) -> None:
    record(
        make_capture(id="g1", composition=BEFORE),
        make_capture(id="s1", purpose="title", lane=Lane.SIDE),
        make_capture(id="g2", composition=NOW_FULL),
        make_capture(id="sub", conversation="talk:a", parent="talk"),
        project=project,
    )

    grew = "Since the call before: +690 bytes: tool results +700 (web +700), assistant \u221210."
    talk = told_at(owner, "/conversations/talk/")
    assert grew in talk
    # Nobody sent one.
    assert "An image counts" not in talk
    assert "Side calls 1" in talk
    # Beside the curve and the newest calls, not among them.
    newest = talk.split("Newest calls", 1)[1]
    assert [newest.count(each) for each in ("g1", "g2", "s1")] == [1, 1, 1]
    assert newest.index("Side calls") < newest.index("s1")
    assert grew in told_at(owner, "/calls/g2/")
    side = told_at(owner, "/calls/s1/")
    assert "talk , side call" in side
    assert "Not known. Calls through the gateway carry it" in side
    record(make_capture(id="g3", composition=replace(BEFORE, images=9)), project=project)
    assert "An image counts as" in told_at(owner, "/conversations/talk/")
    assert "Part of talk" in told_at(owner, "/conversations/talk:a/")
