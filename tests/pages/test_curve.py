"""What the fill curve draws and marks, and what is told of it below."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.budgets.projection import Projection
from helmdash.core.calls.routes import CallRoute
from helmdash.pages.parts.charts.charts import curve
from helmdash.pages.parts.charts.curve_events import events, unexplained_falls
from helmdash.pages.parts.charts.curve_points import LEVEL_WORDS, encoded
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations.curve import CURVE_POINTS, CurvePoint, curve_of
from helmdash.queries.marks import Mark, MarkKind
from helmdash.records.models import Call, Conversation
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
    ({"prompt_tokens": 30_000, "is_history": True}, False),  # it was made before
    ({"prompt_tokens": None}, False),
    ({"prompt_tokens": 9_000, "reason": HealthReason.SUSPECTED_CUT}, False),
]


@pytest.mark.parametrize(("second", "is_fall"), FALLS)
def test_a_fall_that_nothing_explains_is_told(second: dict[str, Any], is_fall: bool) -> None:
    found = unexplained_falls(points({}, second))

    assert [(each.generation, each.gone) for each in found] == ([(2, 20_000)] if is_fall else [])


@pytest.mark.parametrize(
    ("since", "up_to", "expected"),
    [
        (None, None, [6, 7, 8]),
        (None, 5, [3, 4, 5]),
        (None, 5_000, [6, 7, 8]),
        (7, None, [7, 8]),
        (2, 4, [2, 3, 4]),
        (2, 8, [6, 7, 8]),
        (9, None, []),
    ],
)
def test_a_curve_has_the_newest_of_the_generations_that_are_asked_for(
    project: ProjectInfo,
    monkeypatch: pytest.MonkeyPatch,
    since: int | None,
    up_to: int | None,
    expected: list[int],
) -> None:
    monkeypatch.setattr("helmdash.queries.conversations.curve.CURVE_POINTS", 3)
    record(*(make_capture() for _ in range(8)), project=project)
    row = Conversation.objects.get(name="talk")

    found = curve_of(row, since=since, up_to=up_to)

    assert [point.generation for point in found] == expected


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


def test_the_label_of_a_line_that_went_above_the_drawing_is_not_drawn() -> None:
    drawn = curve(points({}, {"limit_tokens": 9_000_000}), width=940, height=270)

    assert [(line.name, line.label_y) for line in drawn.lines] == [("limit", None)]


AHEAD = Projection(level=Level.CAUTION, line=60_000, generations=5, time=timedelta(minutes=5))


@pytest.mark.parametrize(("count", "share"), [(40, 1.0), (3, 0.4)])
def test_a_dashed_line_goes_on_to_the_next_one_as_far_as_there_is_room(
    count: int, share: float
) -> None:
    drawn = curve(points(*[{}] * count), width=940, height=270, ahead=AHEAD)

    (begin, end) = re.findall(r"[ML]([\d.]+),([\d.]+)", drawn.ahead)
    limit = next(line for line in drawn.lines if line.name == "limit")
    risen = (float(begin[1]) - float(end[1])) / (float(begin[1]) - (limit.label_y or 0))
    assert risen == pytest.approx(share, abs=0.02)
    assert float(begin[0]) < float(end[0]) <= drawn.right
    assert curve(points({}), width=940, height=270).ahead == ""


@pytest.mark.parametrize(
    ("line", "goes_on"),
    [
        (55_000, True),  # the line that the calls were judged by
        (58_000, False),  # today's: the budget was edited since, and the drawn one holds no more
    ],
)
def test_lines_go_on_beside_what_comes_next(line: int, goes_on: bool) -> None:
    ahead = replace(AHEAD, line=line)
    judged = points(*[{"optimal_max_tokens": 55_000}] * 9)

    drawn = curve(judged, width=940, height=270, ahead=ahead)

    newest = drawn.first_x + 8 * drawn.step
    ends = {each.name: float(each.path.rsplit("H", 1)[1]) for each in drawn.lines}
    assert ends == dict.fromkeys(
        ["caution", "limit"], drawn.right if goes_on else pytest.approx(newest + 8)
    )


def test_the_name_of_a_line_has_room_beside_the_drawing() -> None:
    drawn = curve(
        points({"prompt_tokens": 2_000_000_000, "limit_tokens": 2_100_000_000}),
        width=940,
        height=270,
    )

    assert [(line.short_value, line.value) for line in drawn.lines] == [("2.1G", 2_100_000_000)]


def test_no_strip_of_a_whole_conversation_that_told_no_tokens(
    owner: Client, project: ProjectInfo
) -> None:
    record(*(make_capture(id=f"g{n}", usage=None) for n in range(60)), project=project)

    html = owner.get("/conversations/talk/").content.decode()

    assert "No curve: usage was not reported." in html
    assert "The whole conversation" not in html


def test_an_edit_of_the_budget_is_marked_between_two_calls_and_listed() -> None:
    shown = [
        replace(each, at=NOW + timedelta(minutes=each.generation)) for each in points({}, {}, {})
    ]
    edit = Mark(at=NOW + timedelta(minutes=2, seconds=9), kind=MarkKind.BUDGET, text="budget m")

    drawn = curve(shown, width=940, height=270, edits=(edit,))

    assert [mark.at for mark in drawn.edits] == [drawn.first_x + 1.5 * drawn.step]
    assert [(each.generation, each.call_id, each.text) for each in events(shown, (), (edit,))] == [
        (2, None, "budget m")
    ]


def test_points_are_told_in_few_letters() -> None:
    told = encoded(
        [
            *points({}, {"prompt_tokens": None}, {"limit_tokens": None, "is_trimmed": True}),
            replace(POINT, generation=9, cause="timed_out", level=Level.UNKNOWN, limit_tokens=None),
        ]
    )

    healthy, unknown = (LEVEL_WORDS.split().index(word) for word in ("healthy", "unknown"))
    assert told.split() == [
        f"@1:~60000:50000/{healthy}",
        f"-/{healthy}",
        f"~0:50000/{healthy}t",
        f"@9:50000/{unknown}!timed_out",
    ]


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
    # Its points and their tables, and not a link with its title for each.
    assert len(newest) < 200_000
    # The strip of the whole leads to any part, and each point to its call.
    stretches = re.findall(r'href="([^"]*from=[^"]*)#curve-title"', newest)
    assert len(stretches) == 12
    middle = owner.get(stretches[5].replace("&amp;", "&")).content.decode()
    assert "256 to 306 of 602" in middle
    assert 'class="shown" x="42.36%" width="8.47%"' in middle
    assert ">Back to the newest<" in middle
    assert owner.get("/generations/7/talk/").headers["Location"] == "/calls/n7/?project=default"
    for number in ("0", "700", "9" * 30):
        missing = owner.get(f"/generations/{number}/talk/")
        said = f"There is no generation {number} of a conversation talk"
        assert (missing.status_code, said in missing.content.decode()) == (404, True)
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


def test_a_page_says_in_how_many_calls_the_next_line_is_reached(
    owner: Client, project: ProjectInfo
) -> None:
    for number in range(4):
        usage = {"prompt_tokens": 60_000 + 5_000 * number}
        record(make_capture(id=f"n{number}", usage=usage), project=project)
    before = owner.get("/conversations/talk/").content.decode()
    owner.post("/budgets/of-call/n1/", {"caution": "90000", "window": "128000", "do": "save"})

    html = owner.get("/conversations/talk/").content.decode()

    assert faults(html) == []
    assert "The caution line, 100,000 tokens, in about 6 calls" in before
    # The calls that come are judged by it, and not by the 100,000 of those that the curve shows.
    assert "The caution line, 90,000 tokens by today's budget, in about 4 calls" in html
    assert 'class="ahead"' in html
    assert "edits of the budget" in html
    assert re.search(r"after 4</td><td>budget openai/gpt-4o added by owner", html)
    older = owner.get("/conversations/talk/", {"to": "3"}).content.decode()
    assert "in about" not in older
    assert 'class="edit"' not in older


def test_a_fall_stands_among_what_left_the_context(owner: Client, project: ProjectInfo) -> None:
    for tokens in (60_000, 9_000):
        record(make_capture(usage={"prompt_tokens": tokens}), project=project)

    html = owner.get("/conversations/talk/").content.decode()

    assert faults(html) == []
    left = html.split('aria-labelledby="left"', 1)[1].split("</section>", 1)[0]
    assert "51,000" in left
    assert "Nothing was reported" not in left


def test_what_came_from_the_cache_is_told_of_each_generation(
    owner: Client, project: ProjectInfo
) -> None:
    """A prefix that broke shows as a share that falls from one call to the next; nothing said of a
    cache is no zero."""
    for cached in (0, 950, None):
        told = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
        usage = {"prompt_tokens": 1_000, "completion_tokens": 1, **told}
        record(make_capture(conversation="talk", usage=usage), project=project)

    html = owner.get("/conversations/talk/").content.decode()
    table = html.split("Prompt tokens by generation", 1)[1].split("</table>", 1)[0]
    cells = re.findall(r'<td class="num" data-name="From cache">(.*?)</td>', table)

    assert cells[0] == '0<span class="sub">0 %</span>'
    assert cells[1] == '950<span class="sub">95 %</span>'
    assert "not reported" in cells[2]


def test_what_a_transcript_told_later_is_said_to_be_earlier(
    owner: Client, project: ProjectInfo
) -> None:
    record(make_capture(id="now", conversation="t"), project=project)
    then = make_capture(
        id="then",
        conversation="t",
        started_at=NOW - timedelta(days=1),
        routes=(CallRoute.TRANSCRIPT,),
    )
    record(then, project=project)

    html = owner.get("/conversations/t/").content.decode()

    table = html.split("Prompt tokens by generation", 1)[1].split("</table>", 1)[0]
    rows = re.findall(r'<a href="/calls/([a-z]+)/', table)
    assert rows == ["now", "then"]
    assert html.count("made before the others, told later") == 1
