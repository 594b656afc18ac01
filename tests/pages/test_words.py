"""Words, forms, figures and drawings: the pure parts of the pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.urls import reverse
from django.utils.html import escape

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import Alias, BudgetSpec, Tier
from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import LEVELS, Glyph, Level
from helmdash.core.conversations.attention import Attention, AttentionReason
from helmdash.core.text.differences import differences
from helmdash.core.text.time_ranges import parse_moment
from helmdash.pages.parts import words
from helmdash.pages.parts.budgets import figure_sources
from helmdash.pages.parts.charts import charts, curve_points, drawings
from helmdash.pages.parts.lists.row_markup import address_of
from helmdash.pages.render import etag
from helmdash.pages.templatetags import formats
from helmdash.pages.templatetags.differences import marked
from helmdash.queries.conversations.curve import CurvePoint
from tests.builders import FALLBACK, make_health, make_spec

NOW = datetime(2026, 6, 5, 14, 41, 3, tzinfo=UTC)


def make_point(generation: int, prompt: int | None, **over: object) -> CurvePoint:
    given: dict[str, object] = {
        "generation": generation,
        "round_number": 1,
        "call_id": f"call-{generation}",
        "model": "m",
        "prompt_tokens": prompt,
        "level": Level.HEALTHY if prompt else Level.UNKNOWN,
        "limit_tokens": 200_000,
        "optimal_max_tokens": 100_000,
        "critical_max_tokens": 180_000,
        "is_trimmed": False,
        "cause": None,
        "at": NOW,
    }
    return CurvePoint(**{**given, **over})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "–"),
        (0.0, "0 %"),
        (0.0004, "< 0.1 %"),  # something, not nothing
        (0.0049, "0.4 %"),
        (0.048, "4.8 %"),
        (0.48, "48 %"),
        (0.8999, "89 %"),  # not yet at the line of 90
        (0.9999, "99 %"),
        (1.0275, "102 %"),
        (12.5, "1,250 %"),
    ],
)
def test_a_share_never_reaches_a_line_by_rounding(share: float | None, text: str) -> None:
    assert words.percent(share) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "–"),
        (0.0, "0 %"),
        (0.0004, "< 0.1 %"),  # something, not nothing
        (0.0049, "0.5 %"),
        (0.09996, "10 %"),
        (0.125, "13 %"),  # half up
        (0.285, "29 %"),  # as a binary fraction a hair less
        (2 / 3, "67 %"),
        (0.9863, "99 %"),
        (0.9951, "> 99 %"),  # not all
        (1.0, "100 %"),
    ],
)
def test_a_rate_is_rounded_but_never_to_none_or_all(share: float | None, text: str) -> None:
    assert words.rounded(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (-4, "just now"),  # a client's clock that runs a little ahead
        (-90, "in 1 min"),
        (5, "5 s ago"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (3600, "1 h ago"),
        (86_399, "23 h ago"),
        (86_400, "1 d ago"),
        (400 * 86_400, "400 d ago"),
    ],
)
def test_ages_are_told_in_the_largest_unit_that_fits(seconds: int, text: str) -> None:
    assert words.ago(NOW - timedelta(seconds=seconds), NOW) == text


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30m", NOW - timedelta(minutes=30)),
        ("24h", NOW - timedelta(hours=24)),
        (" 7 D ", NOW - timedelta(days=7)),
        ("2w", NOW - timedelta(weeks=2)),
        ("2026-06-01", datetime(2026, 6, 1, tzinfo=UTC)),
        ("2026-06-01T12:00", datetime(2026, 6, 1, 12, tzinfo=UTC)),  # no zone means UTC
        ("2026-06-01T12:00+02:00", datetime(2026, 6, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_moment_is_a_distance_or_a_date(text: str, moment: datetime) -> None:
    assert parse_moment(text, now=NOW) == moment


@pytest.mark.parametrize("text", ["banana", "24", "-3h", "99999h", "1y", "2026-13-01", "", "∞h"])
def test_a_moment_that_cannot_be_read_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="write 30m, 24h, 7d, or a date such as 2026-09-01"):
        parse_moment(text, now=NOW)


def test_fill_names_percent_tokens_and_denominator() -> None:
    text = formats.fill(make_health())

    assert "<b>48 %</b> · 96,000 / 200,000 tokens" in text
    assert "of context length" in text


def test_fill_makes_no_percentage_up() -> None:
    silent = make_health(prompt_tokens=None, reason=HealthReason.USAGE_UNAVAILABLE, hard_util=None)
    endless = make_health(limit_tokens=None, limit_source=None, hard_util=None)

    # Shown where nobody can point at the dash, and read aloud once.
    told = 'class="sub only-narrow" aria-hidden="true">usage not reported<'
    assert told in formats.fill(silent)
    assert "%" not in formats.fill(silent)
    assert "<b>96,000</b> tokens" in formats.fill(endless)
    assert "limit unknown" in formats.fill(endless)
    assert "%" not in formats.fill(endless)
    assert "<b>1</b> token<" in formats.fill(replace(endless, prompt_tokens=1))


def test_a_verdict_says_by_how_much_a_line_was_passed() -> None:
    critical = make_health(level=Level.CRITICAL, prompt_tokens=180_001)
    caution = make_health(level=Level.CAUTION, prompt_tokens=150_000)

    assert words.verdict(critical) == "1 over its critical line of 180,000"
    assert words.verdict(caution) == "50,000 over its caution line of 100,000"
    assert words.verdict(make_health()) == ""


def test_every_level_has_a_word_a_colour_class_and_a_shape_of_its_own() -> None:
    shown = {level: formats.level(level) for level in Level}

    assert all(f"is-{level}" in text and level.title() in text for level, text in shown.items())
    assert len({row.glyph for row in LEVELS.values()}) == len(Level)
    assert len({drawings.outline(glyph, 0, 0) for glyph in Glyph}) == 3
    # The ring of unknown is a disc that is not filled.
    assert 'class="ring"' in shown[Level.UNKNOWN]


def test_an_unknown_generation_leaves_a_gap_in_the_curve() -> None:
    points = [make_point(1, 10_000), make_point(2, 20_000), make_point(3, None), make_point(4, 90)]

    drawn = charts.curve(points, width=940, height=270)

    assert len(drawn.segments) == 2
    assert sum(signs.path.count("M") for signs in drawn.signs) == 4
    assert curve_points.encoded(points).split() == [
        *("@1:~200000:10000/0", "20000/0", "-/3", "90/0"),
    ]


def test_a_curve_without_any_reported_usage_is_not_drawn() -> None:
    assert not charts.curve([make_point(1, None)], width=940, height=270).has_values
    assert not charts.curve([], width=940, height=270).has_values


def test_lines_far_above_the_curve_are_told_instead_of_drawn() -> None:
    low = charts.curve([make_point(1, 3_000)], width=940, height=270)
    high = charts.curve([make_point(1, 96_000)], width=940, height=270)

    assert low.lines == ()
    assert dict(low.above) == {"caution": 100_000, "critical": 180_000, "limit": 200_000}
    assert {line.name for line in high.lines} == {"caution", "critical", "limit"}
    assert high.above == ()


def test_labels_of_neighbouring_lines_do_not_touch() -> None:
    points = [make_point(1, 96_000, optimal_max_tokens=179_000)]

    lines = charts.curve(points, width=940, height=270).lines
    labels = sorted(line.label_y or 0 for line in lines)

    assert all(lower - upper >= 13 for upper, lower in pairwise(labels))


def test_a_change_of_model_moves_the_lines() -> None:
    small = {"limit_tokens": 120_000, "critical_max_tokens": 108_000, "model": "n"}
    points = [make_point(1, 90_000), make_point(2, 95_000, **small)]

    limit = next(
        line for line in charts.curve(points, width=940, height=270).lines if line.name == "limit"
    )

    assert limit.value == 120_000
    assert "V" in limit.path


def test_rounds_and_trims_are_marked() -> None:
    points = [make_point(1, 90_000), make_point(2, 9_000, round_number=2, is_trimmed=True)]

    drawn = charts.curve(points, width=940, height=270)

    assert [marker.label for marker in drawn.clear_markers] == ["round 2"]
    assert len(drawn.trims) == 1


def test_all_of_a_long_curve_stays_inside_its_frame() -> None:
    points = [
        make_point(n, n * 700, cause="refused" if n % 97 == 0 else None) for n in range(1, 601)
    ]

    drawn = charts.curve(points, width=380, height=230)

    places = [
        tuple(map(float, place.split(",")))
        for segment in drawn.segments
        for place in segment.removeprefix("M").split(" L")
    ]
    assert all(drawn.left <= x <= drawn.right for x, _ in places)
    assert all(drawn.top <= y <= drawn.bottom for _, y in places)
    assert sum(signs.path.count("M") for signs in drawn.signs) < 100
    # Thinning never hides a call with a cause.
    assert len(drawn.failures) == 6


def test_shares_fill_the_bar_and_leave_out_what_is_empty() -> None:
    parts = drawings.shares([(Level.CRITICAL, 1), (Level.CAUTION, 0), (Level.HEALTHY, 3)])

    assert parts == ((Level.CRITICAL, 0.0, 25.0), (Level.HEALTHY, 25.0, 75.0))
    assert drawings.shares([(Level.CRITICAL, 0)]) == ()


ROW = make_spec(
    "acme/big",
    input_tokens=60_000,
    tier=Tier.A,
    max_catalog_bytes=0,
    wants_strict_json=True,
    context_length=100_000,
    critical_max_tokens=70_000,
)


@pytest.mark.parametrize(
    ("model", "row", "name", "value", "source"),
    [
        ("acme/big", ROW, "Limit", 100_000, "the row's context length"),
        ("acme/big", ROW, "Critical above", 70_000, "row acme/big"),
        (
            "acme/big",
            ROW,
            "Caution above",
            54_444,
            "default: seven ninths of the row's critical line",
        ),
        ("acme/big", ROW, "Tier", Tier.A, "row acme/big"),
        # The :free rule lowers what the row says.
        ("acme/big:free", ROW, "Tier", Tier.C, "the :free rule (the row says A)"),
        ("acme/big:free", ROW, "Input", 16_000, "the :free rule (the row says 60,000)"),
        ("acme/big:free", ROW, "Strict JSON", False, "the :free rule (the row says yes)"),
        ("acme/big:free", ROW, "Prompt variant", "single_pick", "default of tier C"),
        # The fallback knows no limit.
        ("who/knows", FALLBACK, "Limit", None, "add a budget"),
        ("who/knows", FALLBACK, "Critical above", None, "no limit is known"),
        ("who/knows", FALLBACK, "Input", 16_000, "the fallback row"),
        # An alias leads to a row of another spelling.
        ("ACME-big", ROW, "Input", 60_000, "row acme/big"),
    ],
)
def test_each_effective_number_says_where_it_comes_from(
    model: str, row: BudgetSpec, name: str, value: object, source: str
) -> None:
    table = BudgetTable([FALLBACK, ROW], [Alias(prefix="acme-", target="acme/")])

    figures = {figure.name: figure for figure in figure_sources.figures(table.resolve(model), row)}

    assert figures[name].value == value
    assert source in figures[name].source


def test_a_tag_depends_on_the_address_and_the_state() -> None:
    tags = {etag("/calls/", "1:7:3"), etag("/calls/?q=x", "1:7:3"), etag("/calls/", "1:8:3")}

    assert len(tags) == 3
    assert etag("/calls/", "1:7:3") in tags


# The text before, the text after, and the markup of what went and came.
@pytest.mark.parametrize(
    ("before", "after", "markup"),
    [
        ("a red car", "a car", "a <del>red </del>car"),
        ("a car", "a <b> car", "a <ins>&lt;b&gt; </ins>car"),
        # Line by line; what indents a line is not struck through.
        ("{\n  a,\n  b,\n  c\n}", "{\n  c\n}", "{\n  <del>a,</del>\n  <del>b,</del>\n  c\n}"),
        ("same", "same", "same"),
    ],
)
def test_what_went_is_struck_through_word_by_word(before: str, after: str, markup: str) -> None:
    assert marked(differences(before, after)) == markup


@pytest.mark.parametrize(
    ("reason", "detail", "said"),
    [
        (
            AttentionReason.NEWEST_FAILED,
            "the newest call failed: rate_limited",
            "the newest call failed: rate_limited (the provider's rate limit was reached)",
        ),
        # Of an older release, or none: as it is.
        (
            AttentionReason.NEWEST_FAILED,
            "the newest call failed: no cause known",
            "the newest call failed: no cause known",
        ),
        (
            AttentionReason.OFTEN_FAILED,
            "3 of the last 5 calls failed",
            "3 of the last 5 calls failed",
        ),
    ],
)
def test_a_cause_stands_beside_what_it_means(
    reason: AttentionReason, detail: str, said: str
) -> None:
    assert words.why_look(Attention(reason=reason, detail=detail)) == said


@pytest.mark.parametrize("page", ["call", "conversation", "plan", "trim"])
@pytest.mark.parametrize(
    "name",
    ["plain-1", "a/b", "a b?c=d&e#f", "50%", '"quoted"\'', "über/模型", "a//b", "~!$&'()*+,;=:@"],
)
def test_rows_lead_where_django_would_lead(page: str, name: str) -> None:
    if page in {"plan", "trim"} and "/" in name:
        return  # Their ids are ours, and have none.

    assert address_of(page, name) == escape(reverse(page, args=[name]))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (96_000, "96k"),
        (999_499, "999k"),
        (999_999, "1M"),
        (1_048_576, "1.05M"),
        (6_390_000_000, "6.39G"),
        (2**53, "9.01P"),
    ],
)
def test_a_number_of_an_axis_has_three_digits(value: int, said: str) -> None:
    assert drawings.short(value) == said
