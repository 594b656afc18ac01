"""The models page's figures: rates with n and interval, told apart by purpose and variant."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import SentSizes
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.outcomes import CallOutcome, outcome_of
from helmdash.operations.rollups.folding import fold_all
from helmdash.operations.rollups.rebuilding import rebuild
from helmdash.queries import models
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.models import ModelRow, model_rows, recent_calls
from helmdash.records.models import RollupState
from tests.factories import NOW, make_capture
from tests.recording.support import make_ruled_project, record

FREE = "openrouter/nvidia/nemotron-3-super-120b-a12b:free"
# The table of helmdeck ADR 053, read as what it is: when each call ended, how long it took,
# its finish reason, completion tokens, characters, and which of the two passes it was.
ADR_053 = [
    ("14:36:59", 34_139, "length", 600, 2_549, "filter", 1),
    ("14:38:34", 94_958, "stop", 1_547, 685, "plan", 1),
    ("14:38:49", 14_776, "stop", 423, 71, "filter", 2),
    ("14:39:17", 28_854, "stop", 710, 791, "plan", 2),
    ("14:39:33", 15_184, "length", 600, 2_627, "filter", 3),
    ("14:41:03", 90_199, "stop", 1_535, 743, "plan", 3),
]


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


def record_adr_053(project: ProjectInfo) -> None:
    for end, took, finish, tokens, chars, purpose, pair in ADR_053:
        ended = datetime.fromisoformat(f"2026-06-05T{end}+00:00")
        record(
            project,
            make_capture(
                id=f"{purpose}-{pair}",
                conversation=None,
                model=FREE,
                purpose=purpose,
                prompt_variant="full_steps" if purpose == "plan" else None,
                correlation_id=f"story-{pair}",
                usage={"completion_tokens": tokens},
                finish_reason=finish,
                raw_content_len=chars,
                latency_ms=took,
                decoded=finish == "stop",
                started_at=ended - timedelta(milliseconds=took),
            ),
        )


def rows(project: ProjectInfo, **over: Any) -> list[ModelRow]:
    return list(model_rows(project_id=project.id, **over).rows)


def only(project: ProjectInfo) -> ModelRow:
    (row,) = rows(project)
    return row


def test_the_adrs_rows_show_that_every_plan_was_clean(project: ProjectInfo) -> None:
    record_adr_053(project)

    by_purpose = {row.purpose: row for row in rows(project)}

    plan, passes = by_purpose["plan"], by_purpose["filter"]
    assert (plan.clean.count, plan.clean.n, plan.clean.share) == (3, 3, 1.0)
    assert (passes.truncated.count, passes.clean.count, passes.clean.n) == (2, 1, 3)
    assert plan.clean.low == pytest.approx(0.4385, abs=1e-4)
    assert plan.prompt_variant == "full_steps"
    assert passes.prompt_variant is None
    assert passes.finish_reasons == (("length", 2), ("stop", 1))
    assert (plan.latency_p50_ms, plan.latency_p95_ms, plan.timed) == (90_199, 94_958, 3)


def test_the_adrs_rows_stand_in_pairs_of_filter_and_plan(project: ProjectInfo) -> None:
    record_adr_053(project)

    found = recent_calls(project_id=project.id, model=FREE)

    assert [(call.purpose, call.correlation_id) for call in found] == [
        ("filter", "story-3"),
        ("plan", "story-3"),
        ("filter", "story-2"),
        ("plan", "story-2"),
        ("filter", "story-1"),
        ("plan", "story-1"),
    ]
    last = found[-1]
    assert last.ended_at == datetime.fromisoformat("2026-06-05T14:38:34+00:00")
    assert (last.finish_reason, last.completion_tokens, last.raw_content_len) == ("stop", 1547, 685)
    assert (last.latency_ms, last.outcome, last.cause) == (94_958, "clean", None)
    assert (found[0].outcome, found[0].cause) == ("truncated", "length_truncated")


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        # a reply with text, and one that calls a tool
        ({"content": "Done."}, "clean"),
        ({"content": "", "finish_reason": "tool_calls"}, "clean"),
        # cut off
        ({"purpose": "plan", "finish_reason": "length", "content": '{"steps": [{"to'}, "truncated"),
        # a 200 with nothing in it is a failure, whatever the provider says
        ({"content": "", "finish_reason": "stop"}, "empty"),
        ({"content": "", "finish_reason": None}, "empty"),
        # a 200 with something that is no answer
        ({"purpose": "plan", "content": "I would search first."}, "undecodable"),
        ({"purpose": "route", "content": '{"tool": "search", "args": {'}, "undecodable"),
        # everything else
        ({"http_status": 429, "error_message": "Rate limit reached", "usage": None}, "failed"),
        ({"finish_reason": "content_filter", "content": ""}, "failed"),
    ],
)
def test_each_call_has_one_outcome(
    project: ProjectInfo, call: dict[str, Any], outcome: str
) -> None:
    record(project, make_capture(**call))

    row = only(project)

    rates = {
        "clean": row.clean,
        "truncated": row.truncated,
        "empty": row.empty,
        "undecodable": row.undecodable,
        "failed": row.failed,
    }
    assert {name for name, rate in rates.items() if rate.count} == {outcome}
    assert {rate.n for rate in rates.values()} == {row.calls} == {1}
    (told,) = recent_calls(project_id=project.id, model=row.model)
    assert told.outcome == outcome


def test_no_cause_is_clean_and_a_call_without_one_is_only_with_success() -> None:
    assert all(
        outcome_of(cause=cause.value, status="success") is not CallOutcome.CLEAN
        for cause in FailureCause
    )
    assert outcome_of(cause="", status="success") is CallOutcome.CLEAN
    assert outcome_of(cause="", status="cancelled") is CallOutcome.FAILED


def test_calls_are_told_apart_by_model_purpose_and_variant(project: ProjectInfo) -> None:
    for over in (
        {"purpose": "plan", "prompt_variant": "full_steps", "decoded": True},
        {"purpose": "plan", "prompt_variant": "full_steps", "decoded": True},
        {"purpose": "plan", "prompt_variant": "single_pick", "decoded": True},
        {"model": "acme/tiny"},
        # whatever callers invent shares a group
        {"purpose": "summarise"},
        {"purpose": "translate"},
    ):
        record(project, make_capture(content="{}", **over))

    assert [(r.model, r.purpose, r.prompt_variant, r.calls) for r in rows(project)] == [
        ("openai/gpt-4o", "other", None, 2),
        ("openai/gpt-4o", "plan", "full_steps", 2),
        ("openai/gpt-4o", "plan", "single_pick", 1),
        ("acme/tiny", "chat", None, 1),
    ]


def test_a_route_has_no_variant(project: ProjectInfo) -> None:
    """Only plans have variants of the prompt."""
    for variant in ("full_steps", "single_pick", None):
        record(project, make_capture(purpose="route", prompt_variant=variant, decoded=True))

    assert (only(project).calls, only(project).prompt_variant) == (3, None)


@pytest.mark.parametrize(
    ("size", "band"),
    [
        (0, "under 4 KB"),
        (4_095, "under 4 KB"),
        (4_096, "4 to 16 KB"),
        (16_384, "16 to 64 KB"),
        (65_535, "16 to 64 KB"),
        (65_536, "over 64 KB"),
    ],
)
def test_prompts_are_told_apart_by_the_bytes_sent(
    project: ProjectInfo, size: int, band: str
) -> None:
    record(project, make_capture(sent=SentSizes(bytes=size)), make_capture(sent=None))

    row = only(project)

    assert [each.label for each in row.bands if each.clean.n] == [band]
    assert row.unsized == 1
    empty = next(each.clean for each in row.bands if not each.clean.n)
    assert (empty.share, empty.low, empty.high) == (None, None, None)


def test_what_is_not_known_is_in_no_figure(project: ProjectInfo) -> None:
    record(project, make_capture(usage=None, latency_ms=None, sent=None))

    row = only(project)

    assert (row.latency_p50_ms, row.latency_p95_ms, row.timed) == (None, None, 0)
    assert (row.estimate_ratio, row.estimated) == (None, 0)
    assert (row.cached_share, row.cache_told) == (None, 0)


def test_the_estimate_is_compared_with_what_was_counted(project: ProjectInfo) -> None:
    for tokens in (1_000, 1_000, 4_000):
        record(
            project,
            make_capture(
                usage={"prompt_tokens": tokens, "completion_tokens": 1}, sent=SentSizes(bytes=4_000)
            ),
        )

    row = only(project)

    # 4,000 bytes by 4 a token, by the safety factor of 1.2.
    assert row.estimate_ratio == pytest.approx(1.2)
    assert row.estimated == 3


def test_the_share_read_from_a_cache_is_of_the_calls_that_told(project: ProjectInfo) -> None:
    for usage in (
        # OpenAI's count of the prompt includes what was cached
        {"prompt_tokens": 1_000, "prompt_tokens_details": {"cached_tokens": 0}},
        {"prompt_tokens": 3_000, "prompt_tokens_details": {"cached_tokens": 2_000}},
        # nothing is said about a cache
        {"prompt_tokens": 9_000},
    ):
        record(project, make_capture(usage={**usage, "completion_tokens": 1}))

    row = only(project)

    assert (row.cached_share, row.cache_told, row.calls) == (0.5, 2, 3)


def test_how_full_prompts_were_and_how_many_tokens_went_is_told(project: ProjectInfo) -> None:
    """Who looks for a model that is too large for what it is sent reads it here; a call without
    usage, or with a count that is not trusted, is in neither share."""
    for tokens in (6_400, 12_800, 64_000):
        usage = {"prompt_tokens": tokens, "completion_tokens": 100}
        record(project, make_capture(model="openai/gpt-4o", usage=usage))
    record(project, make_capture(model="openai/gpt-4o", usage=None))

    row = only(project)

    assert (row.fullness_p50, row.fullness_p95, row.measured) == (0.1, 0.5, 3)
    assert (row.prompt_tokens, row.completion_tokens) == (83_200, 300)
    assert (row.priced, row.answered, row.calls) == (3, 3, 4)


def test_tokens_that_nobody_reported_are_unknown_and_not_none(project: ProjectInfo) -> None:
    record(project, make_capture(usage=None))

    row = only(project)

    assert (row.prompt_tokens, row.completion_tokens, row.answered) == (None, None, 0)
    assert (row.fullness_p50, row.fullness_p95, row.measured) == (None, None, 0)


def test_percentiles_are_values_that_were_measured(project: ProjectInfo) -> None:
    record(project, *(make_capture(latency_ms=10 * n) for n in range(1, 21)))

    row = only(project)

    assert (row.latency_p50_ms, row.latency_p95_ms) == (100, 190)


def test_a_range_takes_its_start_and_leaves_its_end(project: ProjectInfo) -> None:
    for days in (3, 2, 1):
        record(project, make_capture(id=f"d{days}", started_at=NOW - timedelta(days=days)))

    found = rows(project, since=NOW - timedelta(days=3), until=NOW - timedelta(days=1))

    assert [row.calls for row in found] == [2]


@pytest.mark.parametrize("is_folded", [True, False])
@pytest.mark.parametrize("range_", [{}, {"since": 3}, {"since": 3, "until": 1}, {"until": 2}])
def test_many_calls_are_added_up_to_what_each_of_them_says(
    project: ProjectInfo,
    monkeypatch: pytest.MonkeyPatch,
    range_: dict[str, int],
    is_folded: bool,
) -> None:
    """Every figure is that of the calls; only latencies and the ratio are those of buckets."""
    record_adr_053(project)
    for hours in range(60):
        record(
            project,
            make_capture(
                started_at=NOW - timedelta(hours=hours * 1.3),
                latency_ms=300 + hours,
                ttft_ms=270 + hours if hours % 5 else None,
                sent=SentSizes(bytes=hours * 2_000),
                finish_reason="length" if hours % 3 else "stop",
                model="openai/gpt-4o" if hours % 2 else "GPT-4o",
            ),
        )
    if is_folded:
        fold_all()
    bounds = {name: NOW - timedelta(days=days) for name, days in range_.items()}
    told = rows(project, **bounds)

    monkeypatch.setattr(models, "FEW_CALLS", 0)
    added_up = rows(project, **bounds)

    assert all(row.is_exact for row in told)
    assert not any(row.is_exact or row.is_rounded or row.is_sample for row in added_up)
    spans = [f"latency_p{percent}_ms" for percent in (50, 95, 99)]
    full = ("fullness_p50", "fullness_p95")
    near = (*spans, "ttft_p50_ms", "ttft_p95_ms", "estimate_ratio", *full)
    blurred: dict[str, Any] = {**dict.fromkeys(near, 0), "is_exact": False}
    assert [replace(row, **blurred) for row in added_up] == [
        replace(row, **blurred) for row in told
    ]
    for row, exact in zip(added_up, told, strict=True):
        for name in near:
            assert getattr(row, name) == pytest.approx(getattr(exact, name), rel=0.01), name


def test_before_all_calls_are_counted_a_range_is_told_by_its_newest(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "MOST_CALLS", 3)
    RollupState.objects.create(project_id=project.id, is_complete=False)
    record(project, *(make_capture(conversation=None) for _ in range(3)))
    assert not only(project).is_sample
    record(project, make_capture(conversation=None, model="acme/new"))

    found = rows(project)

    assert [(row.model, row.calls, row.is_sample) for row in found] == [
        ("openai/gpt-4o", 2, True),
        ("acme/new", 1, True),
    ]
    # Of one model as many are read again.
    assert [(row.calls, row.is_sample) for row in rows(project, model="openai/gpt-4o")] == [
        (3, False)
    ]
    rebuild(actor=SHELL, project_id=project.id, progress=lambda _: None)
    assert [(row.calls, row.is_sample) for row in rows(project)] == [(3, False), (1, False)]


def test_a_filter_pass_of_another_model_stands_beside_its_plan(project: ProjectInfo) -> None:
    for at, (purpose, model) in enumerate([("filter", "acme/tiny"), ("plan", FREE)]):
        record(
            project,
            make_capture(
                purpose=purpose,
                model=model,
                correlation_id="story",
                decoded=True,
                started_at=NOW + timedelta(seconds=at),
            ),
        )

    found = recent_calls(project_id=project.id, model=FREE)
    plans = recent_calls(project_id=project.id, model=FREE, purpose="plan")

    assert [(call.purpose, call.model) for call in found] == [
        ("filter", "acme/tiny"),
        ("plan", FREE),
    ]
    assert [call.purpose for call in plans] == ["plan"]


def test_calls_of_no_story_stand_alone_newest_first(project: ProjectInfo) -> None:
    for number in range(4):
        record(
            project, make_capture(id=f"call-{number}", started_at=NOW + timedelta(seconds=number))
        )

    found = recent_calls(project_id=project.id, model="openai/gpt-4o", limit=3)

    assert [call.id for call in found] == ["call-3", "call-2", "call-1"]


def test_figures_take_four_queries_and_recent_calls_five(project: ProjectInfo) -> None:
    record_adr_053(project)

    with CaptureQueriesContext(connection) as figures:
        rows(project)
    with CaptureQueriesContext(connection) as recent:
        recent_calls(project_id=project.id, model=FREE)

    assert (len(figures), len(recent)) == (4, 5)
