"""What the fill curve draws and marks, and what is told of it below."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.pages.parts.charts import curve
from helmdash.pages.parts.curve_events import events, unexplained_falls
from helmdash.queries.access import ProjectInfo
from helmdash.queries.conversations.curve import CURVE_POINTS, CurvePoint
from helmdash.records.models import Call
from tests.factories import NOW, make_capture, record
from tests.pages.hygiene import faults

POINT = CurvePoint(
    generation=1, round_number=1, call_id="c", model="m", prompt_tokens=50_000,
    level=Level.HEALTHY, limit_tokens=60_000, optimal_max_tokens=None, critical_max_tokens=None,
    is_trimmed=False, cause=None, at=NOW,
)  # fmt: skip


def points(*over: dict[str, Any]) -> list[CurvePoint]:
    """Points in a row, each the ordinary one but for what is given."""
    return [
        replace(POINT, generation=number, call_id=f"c{number}", **each)
        for number, each in enumerate(over, 1)
    ]


# what the second call says, and whether its prompt fell without a reason
FALLS: list[tuple[dict[str, Any], bool]] = [
    ({"prompt_tokens": 30_000}, True),
    ({"prompt_tokens": 45_500}, False),  # thoughts that were dropped
    ({"prompt_tokens": 30_000, "round_number": 2}, False),
    ({"prompt_tokens": 30_000, "is_trimmed": True}, False),
    ({"prompt_tokens": 30_000, "model": "another"}, False),
    ({"prompt_tokens": None}, False),
    ({"prompt_tokens": 9_000, "reason": HealthReason.SUSPECTED_CUT}, False),
]


@pytest.mark.parametrize(("second", "is_fall"), FALLS)
def test_a_fall_that_nothing_explains_is_told(second: dict[str, Any], is_fall: bool) -> None:
    found = unexplained_falls(points({}, second))

    assert [(each.generation, each.gone) for each in found] == ([(2, 20_000)] if is_fall else [])


def test_a_fall_is_seen_across_calls_that_told_nothing() -> None:
    (fall,) = unexplained_falls(points({}, {"prompt_tokens": None}, {"prompt_tokens": 900}))

    assert (fall.generation, fall.before, fall.after) == (3, 50_000, 900)


def test_what_happened_is_told_newest_first_and_all_of_one_call_together() -> None:
    told = events(
        points({}, {"cause": "timed_out"}, {"prompt_tokens": 100, "cause": "refused"}, {}), ()
    )

    assert [(each.generation, each.text) for each in told] == [
        (3, "49,900 tokens fewer than the call before, and nothing told why; failed: refused"),
        (2, "failed: timed_out"),
    ]


def test_a_line_is_not_drawn_where_it_lies_above_the_drawing() -> None:
    drawn = curve(
        points({}, {"limit_tokens": 9_000_000}, {"limit_tokens": None}, {}), width=380, height=230
    )

    (limit,) = [line for line in drawn.lines if line.name == "limit"]
    heights = [float(y) for y in re.findall(r"(?:[MLV]|M[\d.-]+,|L[\d.-]+,)(\d[\d.]*)", limit.path)]
    # Two pieces, before and after, and none of them at the edge.
    assert limit.path.count("M") == 2
    assert min(heights) >= drawn.top


def test_failed_calls_and_falls_are_marked() -> None:
    drawn = curve(points({"cause": "refused"}, {"prompt_tokens": 9_000}), width=380, height=230)

    assert (len(drawn.failures), len(drawn.falls)) == (1, 1)


def test_every_generation_of_a_long_conversation_can_be_reached(
    owner: Client, project: ProjectInfo
) -> None:
    record(*(make_capture(id=f"n{n}") for n in range(1, CURVE_POINTS + 3)), project=project)
    newest = owner.get("/conversations/talk/").content.decode()
    assert faults(newest) == []
    assert "3 to 602 of 602" in newest

    (older,) = re.findall(r'href="([^"]*)#curve-title">older', newest)
    oldest = owner.get(older.replace("&amp;", "&")).content.decode()

    assert faults(oldest) == []
    assert "1 to 2 of 602" in oldest
    assert 'href="/calls/n1/' in oldest
    assert ">older<" not in oldest
    assert re.search(r'to=602[^"]*#curve-title">newer', oldest)
    for odd in ("0", "x", "9" * 30, "²"):
        assert "3 to 602" in owner.get("/conversations/talk/", {"to": odd}).content.decode()


def test_from_generations_that_are_not_kept_a_link_leads_to_the_newest(
    owner: Client, project: ProjectInfo
) -> None:
    record(*(make_capture(id=f"n{n}") for n in range(1, 4)), project=project)
    Call.objects.filter(generation__lt=3).delete()

    html = owner.get("/conversations/talk/", {"to": "2"}).content.decode()

    assert faults(html) == []
    assert "none of these are kept" in html
    assert re.search(r'href="/conversations/talk/\?project=default#curve-title">newest', html)
    assert ">newest<" not in owner.get("/conversations/talk/").content.decode()


def test_a_fall_stands_among_what_left_the_context(owner: Client, project: ProjectInfo) -> None:
    for tokens in (60_000, 9_000):
        record(make_capture(usage={"prompt_tokens": tokens}), project=project)

    html = owner.get("/conversations/talk/").content.decode()

    assert faults(html) == []
    left = html.split('aria-labelledby="left"', 1)[1].split("</section>", 1)[0]
    assert "51,000" in left
    assert "Nothing that was reported" not in left
