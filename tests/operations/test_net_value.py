"""The net value of shortened prompts, to the token: the calculations of docs/net-value.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import DjangoAssertNumQueries

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import CapturedTrim
from helmdash.core.evidence.net_value import (
    Prices,
    Prompt,
    Shortening,
    is_too_early,
    of_fresh_start,
    of_trim,
    sum_of_tokens,
)
from helmdash.core.evidence.suggested import Counted
from helmdash.operations.care import clearing
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.evidence.net_value import (
    MOST_READ,
    net_report,
    of_calls,
    of_conversation,
)
from helmdash.records.models import Budget
from tests.factories import make_capture
from tests.operations.test_picked_later import make_fit
from tests.recording.support import make_ruled_project, record
from tests.shortened import CLAUDE, GPT, SESSION, TRIMMED, at, gpt

DOCS = Path(__file__).parents[2] / "docs" / "net-value.md"


@pytest.fixture
def project(db: None) -> ProjectInfo:
    made = make_ruled_project()
    Budget.objects.filter(key="anthropic/").update(
        input_cost_usd_per_mtok=3.0,
        cached_input_cost_usd_per_mtok=0.3,
        cache_write_cost_usd_per_mtok=3.75,
        output_cost_usd_per_mtok=15.0,
    )
    Budget.objects.filter(key=GPT).update(
        input_cost_usd_per_mtok=2.5, cached_input_cost_usd_per_mtok=1.25
    )
    return made


def test_a_compaction_agrees_with_the_calculation_by_hand(project: ProjectInfo) -> None:
    record(project, *SESSION)

    (found,) = of_conversation(project_id=project.id, conversation="talk")

    assert found.kind is Shortening.COMPACTION
    assert [each and each.id for each in (found.before, found.making, found.after)] == [
        "c1",
        "c2",
        "c3",
    ]
    value = found.value
    assert (value.saved_tokens, value.held_tokens) == (138_998, 160_000)
    assert (value.rebilled_tokens, value.making_tokens) == (9_008, 3_000)
    assert value.net_tokens == 126_990
    assert value.net_usd == pytest.approx(-0.071556, abs=1e-12)
    assert value.pays_after == 3
    told = DOCS.read_text()
    for figure in (138_998, 9_008, 3_000, 126_990, -71_556):
        assert f"**{figure:,}**" in told
    # 160,006 of 200,000, and nothing was refused before it.
    assert found.share_of_window == pytest.approx(0.80003)
    assert (found.is_too_early, found.is_too_late, found.may_have_expired) == (False, False, False)
    assert (found.clean_before.calls, found.clean_after.clean) == (2, 2)
    assert found.next_after_calls is None


def test_a_trim_agrees_with_the_calculation_by_hand(project: ProjectInfo) -> None:
    record(project, *TRIMMED)

    (found,) = of_calls(project_id=project.id, call_ids=["plain", "cut", "nobody's"])

    assert (found.kind, found.before and found.before.id) == (Shortening.TRIM, "plain")
    value = found.value
    assert (value.saved_tokens, value.rebilled_tokens, value.net_tokens) == (5_000, 8_192, -3_192)
    assert value.net_usd == pytest.approx(0.00226, abs=1e-12)
    told = DOCS.read_text()
    assert all(f"**{figure:,}**" in told for figure in (5_000, 8_192, -3_192, 2_260))


def test_a_range_adds_up_what_is_known_and_counts_the_rest(
    project: ProjectInfo, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    record(project, *SESSION, *TRIMMED)
    # No cache is told of, and an overflow came before a clear that came too early for its window.
    record(
        project,
        gpt("low", 20, 30_000, None, conversation="cleared"),
        make_capture(
            id="over",
            conversation="cleared",
            usage=None,
            finish_reason=None,
            http_status=400,
            error_message="This model's maximum context length is 128000 tokens.",
            error_code="context_length_exceeded",
            started_at=at(21),
        ),
    )
    clearing.clear(
        actor=SHELL, project=project, conversation="cleared", now=at(22), reason="a test"
    )
    record(project, gpt("fresh", 30, 10_000, None, conversation="cleared"))

    with django_assert_max_num_queries(17):
        found = net_report(project_id=project.id)

    assert [each.kind for each in found.items] == ["clear", "trim", "compaction"]
    clear = found.items[0]
    assert (clear.before and clear.before.id, clear.after and clear.after.id) == ("low", "fresh")
    assert (clear.is_too_early, clear.is_too_late, clear.may_have_expired) == (True, True, True)
    assert (clear.value.saved_tokens, clear.value.net_tokens) == (20_000, None)
    everything = found.all
    assert (everything.count, everything.too_early, everything.too_late) == (3, 1, 1)
    assert everything.saved_tokens.sum == 138_998 + 5_000 + 20_000
    assert (everything.net_tokens.sum, everything.net_tokens.unknown) == (126_990 - 3_192, 1)
    assert everything.net_usd.sum == pytest.approx(0.00226 - 0.071556, abs=1e-12)
    assert everything.net_usd.unknown == 1
    assert [(each.name, each.count) for each in found.models] == [(GPT, 2), (CLAUDE, 1)]
    assert (found.is_sample, found.first_at) == (False, at(3))
    # Narrowed by range, by kind and by any spelling of the model.
    assert [each.kind for each in net_report(project_id=project.id, since=at(12)).items] == [
        "clear"
    ]
    assert not net_report(project_id=project.id, until=at(3)).items
    of_kind = net_report(project_id=project.id, kind=Shortening.TRIM, model="openai/GPT-4o")
    assert [each.after and each.after.id for each in of_kind.items] == ["cut"]


def test_however_many_there_are_so_many_are_read(
    project: ProjectInfo, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    cut = CapturedTrim(before_bytes=2_000, after_bytes=1_000)
    record(
        project,
        *(
            gpt(f"t{n}", n / 100, 1_000, 0, conversation=f"many-{n % 7}", trim=cut)
            for n in range(MOST_READ + 5)
        ),
    )

    with django_assert_max_num_queries(17):
        found = net_report(project_id=project.id)

    assert (found.is_sample, found.all.count) == (True, MOST_READ)
    # Nobody said how many bytes were sent.
    assert (found.all.saved_tokens.sum, found.all.saved_tokens.unknown) == (None, MOST_READ)


def test_calls_that_nothing_was_cut_for_take_no_place(project: ProjectInfo) -> None:
    whole = CapturedTrim(before_bytes=2_000, after_bytes=2_000)
    cut = CapturedTrim(before_bytes=2_000, after_bytes=1_000)
    fits = {"cut": 1_000, "whole": 2_000}
    for name, after in fits.items():
        make_fit(project, name, before_bytes=2_000, after_bytes=after)
    record(
        project,
        gpt("told", 0, 1_000, 0, trim=cut),
        *(gpt(f"by-{name}", 1, 1_000, 0, fit_id=name) for name in fits),
        *(gpt(f"w{n}", 2 + n / 100, 1_000, 0, trim=whole) for n in range(MOST_READ + 1)),
    )

    found = net_report(project_id=project.id)

    assert [each.after and each.after.id for each in found.items] == ["by-cut", "told"]
    assert not found.is_sample


def test_sums_count_a_call_once_and_none_that_was_cut_as_one_before(project: ProjectInfo) -> None:
    cut = CapturedTrim(before_bytes=2_000, after_bytes=1_000)
    trims = [None, None, cut, cut, cut, None]
    talk = [gpt(f"t{n}", n, 1_000, 0, conversation="talk", trim=t) for n, t in enumerate(trims)]
    record(project, *talk)

    found = net_report(project_id=project.id)

    assert [each.clean_before.calls for each in found.items] == [4, 3, 2]
    for each in (found.all, *found.kinds, *found.models):
        assert (each.clean_before, each.clean_after) == (
            Counted(calls=2, clean=2),
            Counted(calls=4, clean=4),
        )


PLAIN = Prices(plain=1.0)


@pytest.mark.parametrize(
    ("before", "after", "making", "prices", "expected"),
    [
        # The cache of the start survived: nothing was paid anew.
        (Prompt(tokens=90, cached=80, written=None), (30, 30, None), None, PLAIN, (60, 0, 60, 0.0)),
        # More in the cache than the shorter prompt has: it cannot be paid anew twice.
        (Prompt(tokens=90, cached=40, written=50), (30, 0, 30), None, PLAIN, (60, 30, 30, 60e-6)),
        # Not told of the cache, before or after; no price; no completion of the summary's call.
        (
            Prompt(tokens=90, cached=None, written=5),
            (30, 0, 0),
            None,
            PLAIN,
            (60, None, None, None),
        ),
        (
            Prompt(tokens=90, cached=10, written=5),
            (30, None, 0),
            None,
            PLAIN,
            (60, None, None, None),
        ),
        (
            Prompt(tokens=90, cached=0, written=0),
            (30, 0, 0),
            None,
            Prices(plain=None),
            (60, 0, 60, None),
        ),
        (
            Prompt(tokens=90, cached=0, written=0),
            (30, 0, 0),
            Prompt(tokens=90, cached=0, written=0),
            PLAIN,
            (60, 0, None, None),
        ),
        # Nor is what the summary's call took from a cache.
        (
            Prompt(tokens=90, cached=0, written=0),
            (30, 0, 0),
            Prompt(tokens=90, cached=None, written=None, completion=5),
            Prices(plain=1.0, completion=1.0),
            (60, 0, None, None),
        ),
    ],
)
def test_what_is_not_told_is_unknown(
    before: Prompt,
    after: tuple[int | None, int | None, int | None],
    making: Prompt | None,
    prices: Prices,
    expected: tuple[int | None, int | None, int | None, float | None],
) -> None:
    tokens, cached, written = after

    found = of_fresh_start(
        before=before,
        after=Prompt(tokens=tokens, cached=cached, written=written),
        making=making,
        prices=prices,
    )

    known = (found.saved_tokens, found.rebilled_tokens, found.net_tokens, found.net_usd)
    assert known == (*expected[:3], None if expected[3] is None else known[3])
    assert (known[3] is None) == (expected[3] is None)


def test_the_first_call_of_all_has_nothing_to_be_held_against() -> None:
    after = Prompt(tokens=101, cached=0, written=0)

    found = of_trim(before=None, after=after, saved_bytes=50, sent_bytes=100, prices=PLAIN)

    # A half is rounded up.
    assert (found.saved_tokens, found.held_tokens, found.net_tokens) == (51, None, None)
    assert of_fresh_start(before=after, after=None, making=None, prices=PLAIN).saved_tokens is None
    assert sum_of_tokens([None, None]).sum is None
    assert (is_too_early(None), is_too_early(0.49), is_too_early(0.5)) == (None, True, False)
