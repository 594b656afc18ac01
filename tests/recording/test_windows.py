"""Windows that calls teach: refusals that name one, proofs against one, an operator's word."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.budgets.levels import Level
from helmdash.core.budgets.refused_windows import OWN_WORDS
from helmdash.core.calls.capture import Capture
from helmdash.operations.budgets.shipped import load_budgets
from helmdash.operations.recording.call_batch import Recorded
from helmdash.operations.recording.calls import record_calls
from helmdash.providers.registry import CLIENTS
from helmdash.queries.access.access import ProjectInfo, project_info
from helmdash.queries.budgets import budgets
from helmdash.records.models import Budget, LearnedWindow, Project
from tests.factories import NOW, make_capture

pytestmark = pytest.mark.django_db

MODEL = "ollama/tiny"
REFUSED = {
    "status": "error",
    "http_status": 400,
    "usage": None,
    "error_message": "This model's maximum context length is 16384 tokens. You sent 20000.",
}
_count = iter(range(10_000))


@pytest.fixture
def shipped(project: ProjectInfo) -> ProjectInfo:
    load_budgets(update=True)
    return project


def call(project: ProjectInfo, tokens: int | None, **over: Any) -> Recorded:
    number = next(_count)
    given: dict[str, Any] = {
        "id": f"w{number}",
        "model": MODEL,
        "usage": None if tokens is None else {"prompt_tokens": tokens, "completion_tokens": 1},
        **over,
    }
    now = NOW + timedelta(seconds=number)
    (recorded,) = record_calls(
        project=project, captures=[make_capture(**given)], caller="key", now=now
    )
    return recorded


def limit(project: ProjectInfo, model: str = MODEL) -> tuple[int | None, str | None]:
    budget = budgets.table(project_id=project.id).lookup(model)
    return budget.limit_tokens, budget.limit_source


def row_of(key: str) -> Budget:
    return Budget.objects.get(key=key, project=None)


def edit(key: str, **changes: Any) -> None:
    """As any door does it: the history is written by the row itself."""
    row = row_of(key)
    for name, value in changes.items():
        setattr(row, name, value)
    row.save()


def test_a_refusal_that_names_its_window_is_believed_at_once(shipped: ProjectInfo) -> None:
    assert limit(shipped) == (3072, "budget")

    refused = call(shipped, None, **REFUSED)

    assert limit(shipped) == (16_384, "refusal")
    assert limit(shipped, "Ollama/Tiny:latest") == (16_384, "refusal")
    assert limit(shipped, "ollama/other") == (3072, "budget")
    after = call(shipped, 5000).health
    assert (after.level, after.limit_tokens, after.limit_source) == (
        Level.HEALTHY, 16_384, LimitSource.REFUSAL,
    )  # fmt: skip
    claims = budgets.resolve(project_id=shipped.id, model=MODEL).budget.claims
    assert [(claim.source, claim.call_id) for claim in claims] == [
        ("refusal", refused.id), ("budget", ""),
    ]  # fmt: skip


def test_a_refusal_before_the_answer_teaches_as_well(shipped: ProjectInfo) -> None:
    tried = {"error": "context_overflow", "message": REFUSED["error_message"]}
    call(shipped, 100, attempts=({**tried, "number": 1}, {"status": 200}))

    assert limit(shipped) == (16_384, "refusal")


def test_what_a_body_names_counts_where_the_message_names_none(shipped: ProjectInfo) -> None:
    said = "the request exceeds the available context size. try increasing it"
    call(shipped, None, **{**REFUSED, "error_message": said}, refused_window=2048)

    assert limit(shipped) == (2048, "refusal")


def test_other_failures_teach_nothing(shipped: ProjectInfo) -> None:
    for message in ("Rate limit: maximum context length 4096 tokens per minute", "boom 4096"):
        call(shipped, None, **{**REFUSED, "http_status": 429, "error_message": message})

    assert not LearnedWindow.objects.exists()


@pytest.mark.parametrize("words", sorted({each.too_long_words for each in CLIENTS.values()}))
def test_our_own_refusal_teaches_nothing(shipped: ProjectInfo, words: str) -> None:
    """Nothing was sent, so nobody said how large the window is: the budget became it, and in
    Ollama's words even the tokens that were too many."""
    said = words.format(estimate=60_020, limit=3072, over=56_948) + f" ({OWN_WORDS}ollama/)"
    for told in (
        {"http_status": None, "error_code": "over_budget"},
        REFUSED,  # as the client tells of it, or a HelmDash that is the upstream of another
    ):
        call(shipped, None, **{**REFUSED, **told, "error_message": said})

    assert limit(shipped) == (3072, "budget")
    assert not LearnedWindow.objects.exists()


def test_a_success_far_above_the_limit_turns_nothing_red(shipped: ProjectInfo) -> None:
    call(shipped, 3379)  # 10 % above: a count may differ
    assert limit(shipped) == (3072, "budget")

    proof = call(shipped, 9000)

    assert (proof.health.level, proof.health.reason) == (
        Level.UNKNOWN, HealthReason.MODEL_LIMIT_UNAVAILABLE,
    )  # fmt: skip
    assert proof.health.optimal_max_tokens == 100_000  # not 70 % of what is wrong
    for tokens in (100, 3000, 20_000):
        assert call(shipped, tokens).health.level is Level.UNKNOWN
    budget = budgets.table(project_id=shipped.id).lookup(MODEL)
    assert budget.disproved_by is not None
    assert budget.disproved_by.call_id == proof.id
    # until somebody decides
    Budget.objects.create(**_row(context_length=32_768), project_id=shipped.id)
    assert call(shipped, 9000).health.level is Level.HEALTHY
    assert limit(shipped) == (32_768, "context_length")


def test_a_refusal_after_the_proof_is_believed(shipped: ProjectInfo) -> None:
    """The server has been set up anew, with less."""
    call(shipped, 30_000)
    call(shipped, None, **REFUSED)

    assert limit(shipped) == (16_384, "refusal")
    call(shipped, 30_000)
    assert limit(shipped) == (None, None)


@pytest.mark.parametrize("model", ["qwen3", "Qwen/Qwen3-8B", "hf.co/acme/tiny-gguf:Q4"])
def test_a_name_finds_the_window_that_its_only_upstream_told(
    shipped: ProjectInfo, model: str
) -> None:
    """Local servers list models by their publisher's name, whose slash is no provider's: the page
    of the budget said that no limit is known, beside calls that were judged by one."""
    call(shipped, 100, model=model, provider="box", server_window=32_768)

    assert limit(shipped, model) == (32_768, "server")
    assert limit(shipped, f"box/{model}") == (32_768, "server")
    assert limit(shipped, f"other/{model}") == (None, None)
    call(shipped, 100, model=model, provider="cupboard", server_window=8192)
    assert limit(shipped, model) == (None, None)
    assert limit(shipped, f"cupboard/{model}") == (8192, "server")


def test_a_known_model_takes_no_window_from_another_providers(shipped: ProjectInfo) -> None:
    before = limit(shipped, "openai/gpt-4o")
    call(shipped, 100, model="openai/gpt-4o", provider="router", server_window=8192)

    assert limit(shipped, "openai/gpt-4o") == before
    assert limit(shipped, "router/openai/gpt-4o") == (8192, "server")


def _refused(tokens: int, days_ago: int = 0) -> dict[str, Any]:
    said = f"This model's maximum context length is {tokens} tokens. You sent 90000."
    return {**REFUSED, "error_message": said, "started_at": NOW - timedelta(days=days_ago)}


def _answered(tokens: int, days_ago: int = 0) -> dict[str, Any]:
    usage = {"prompt_tokens": tokens, "completion_tokens": 1}
    return {"usage": usage, "started_at": NOW - timedelta(days=days_ago)}


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        ([_refused(16_384), _refused(8192, 30)], 16_384),
        ([_refused(8192, 30), _refused(16_384, 10)], 16_384),
        ([_refused(16_384, 10), _refused(8192, 30), _refused(4096, 20)], 16_384),
        ([_refused(8192), _refused(16_384)], 16_384),  # of the same moment: the one told last
        # A longer prompt of before the refusal proves nothing against it, one of after it does.
        ([_refused(16_384), _answered(30_000, 30)], 16_384),
        ([_answered(30_000, 30), _refused(16_384)], 16_384),
        ([_refused(16_384, 30), _answered(30_000)], None),
        ([_refused(16_384, 30), _answered(30_000), _answered(60_000, 60)], None),
        ([_answered(30_000), _refused(16_384, 30)], None),
    ],
)
def test_history_that_is_imported_takes_the_word_from_nobody_later(
    shipped: ProjectInfo, told: list[dict[str, Any]], tokens: int | None, together: bool
) -> None:
    """A window counts by when its call was made, not by when that was told."""
    captures = [make_capture(id=f"i{n}", model=MODEL, **one) for n, one in enumerate(told)]
    batches = [captures] if together else [[each] for each in captures]
    for batch in batches:
        now = NOW + timedelta(seconds=next(_count))
        record_calls(project=shipped, captures=batch, caller="key", now=now)

    assert limit(shipped)[0] == tokens


@pytest.mark.parametrize("over", [{"purpose": "embedding"}, {"status": "error"}])
def test_what_is_no_answered_prompt_proves_nothing(
    shipped: ProjectInfo, over: dict[str, Any]
) -> None:
    call(shipped, 90_000, **over)

    assert not LearnedWindow.objects.exists()


def test_an_operators_number_holds_against_a_proof(shipped: ProjectInfo) -> None:
    Budget.objects.create(**_row(context_length=4096), project_id=shipped.id)

    assert call(shipped, 9000).health.level is Level.CRITICAL
    assert call(shipped, 9000).health.level is Level.CRITICAL
    budget = budgets.table(project_id=shipped.id).lookup(MODEL)
    assert (budget.limit_tokens, budget.disproved_by is not None) == (4096, True)


def test_what_the_server_says_is_kept_and_outlives_an_older_refusal(shipped: ProjectInfo) -> None:
    call(shipped, 100, server_window=8192)
    assert limit(shipped) == (8192, "server")
    call(shipped, None, **REFUSED)
    assert limit(shipped) == (16_384, "refusal")
    call(shipped, 100, server_window=8192)  # nothing new
    assert limit(shipped) == (16_384, "refusal")

    recorded = call(shipped, 100, server_window=65_536)  # set up anew

    assert limit(shipped) == (65_536, "server")
    assert call(shipped, 100).health.limit_tokens == 65_536
    assert recorded.health.limit_source is LimitSource.REFUSAL  # known only from now on


def test_one_projects_calls_teach_no_other(shipped: ProjectInfo) -> None:
    row = Project.objects.create(slug="other", name="Other")
    other = project_info(row)
    call(other, None, **REFUSED)

    assert limit(other) == (16_384, "refusal")
    assert limit(shipped) == (3072, "budget")


def test_a_repeat_teaches_nothing_twice(shipped: ProjectInfo) -> None:
    call(shipped, 9000, id="same")
    before = LearnedWindow.objects.get()
    call(shipped, 90_000, id="same")

    assert LearnedWindow.objects.get().tokens == before.tokens == 9000


def test_a_fleet_of_calls_teaches_the_last_word(shipped: ProjectInfo) -> None:
    refused = {
        **REFUSED,
        "model": MODEL,
        "error_message": None,
        "error_code": "context_length_exceeded",
    }
    captures = [make_capture(id=f"b{n}", refused_window=1000 + n, **refused) for n in range(30)]
    record_calls(project=shipped, captures=captures, caller="key", now=NOW)

    assert limit(shipped) == (1029, "refusal")


@pytest.mark.parametrize(
    ("changes", "is_operators"),
    [
        ({"tier": "B"}, False),
        ({"evidence": "measured"}, False),
        ({"input_tokens": 4000}, True),  # a row without lengths: this is its window
        ({"context_length": 4096}, True),
        ({}, True),  # saved as it is: confirmed
    ],
)
def test_only_an_edit_of_the_window_makes_it_an_operators(
    shipped: ProjectInfo, changes: dict[str, Any], is_operators: bool
) -> None:
    call(shipped, 100, server_window=8192)

    edit("ollama/", **changes)

    assert (limit(shipped)[1] != "server") is is_operators


def test_no_line_of_a_row_is_for_a_longer_window_than_was_told(shipped: ProjectInfo) -> None:
    """A caution line above the critical one was never reached."""
    edit("ollama/", optimal_max_tokens=2_400)
    for window, lines in (
        (8_192, (2_400, "budget", 7_372)),
        (2_500, (1_750, "share_of_limit", 2_250)),
    ):
        call(shipped, 100, server_window=window)
        found = budgets.table(project_id=shipped.id).lookup(MODEL)
        told = found.optimal_max_tokens, found.optimal_source, found.critical_max_tokens
        assert told == lines


def test_a_red_line_of_a_row_holds_as_far_as_it_fits_into_the_window_that_counts(
    shipped: ProjectInfo,
) -> None:
    """No shipped row sets one: it is an operator's, and was passed over where a server told the
    window or nobody knows it."""
    edit("ollama/", critical_max_tokens=3_000, optimal_max_tokens=2_000)

    def lines() -> tuple[int | None, int | None]:
        budget = budgets.table(project_id=shipped.id).lookup(MODEL)
        return budget.limit_tokens, budget.critical_max_tokens

    assert lines() == (3_072, 3_000)
    call(shipped, 100, server_window=8_192)
    assert lines() == (8_192, 3_000)
    call(shipped, 100, server_window=2_500)
    assert lines() == (2_500, 2_250)
    call(shipped, 9_000)
    assert lines() == (None, 3_000)


def test_loading_the_shipped_rows_again_takes_the_word_back(shipped: ProjectInfo) -> None:
    call(shipped, 100, server_window=8192)
    edit("ollama/", context_length=4096)
    assert limit(shipped) == (4096, "context_length")

    load_budgets(update=True)

    assert limit(shipped) == (8192, "server")


def test_a_row_with_lengths_keeps_its_window_when_its_ceiling_is_edited(
    shipped: ProjectInfo,
) -> None:
    model = "anthropic/claude-sonnet-4-5[1m]"
    edit("anthropic/claude-sonnet-", input_tokens=150_000)
    assert limit(shipped, model) == (1_000_000, "client")

    edit("anthropic/claude-sonnet-", context_length=200_000)
    edit("anthropic/claude-sonnet-", context_length=180_000)
    assert limit(shipped, model) == (180_000, "context_length")


def test_a_clients_window_is_kept_and_judged_by(shipped: ProjectInfo) -> None:
    told = {"model": "claude-sonnet-4-5", "client_window": 1_000_000}

    health = call(shipped, 240_000, **told).health

    assert (health.level, health.limit_tokens) == (Level.CAUTION, 1_000_000)
    assert call(shipped, 190_000, model="claude-sonnet-4-5").health.level is Level.CRITICAL
    unknown = call(shipped, 100, model="nobody/knows", client_window=40_000).health
    assert (unknown.limit_tokens, unknown.limit_source) == (40_000, LimitSource.CLIENT)


def _row(**over: Any) -> dict[str, Any]:
    return {
        "key": MODEL,
        "input_tokens": 3000,
        "output_tokens": 500,
        "tier": "C",
        "max_catalog_bytes": 0,
        **over,
    }


def test_calls_of_a_batch_are_judged_as_they_are_one_by_one(shipped: ProjectInfo) -> None:
    told: list[dict[str, Any]] = [
        {"prompt": 3000},  # red, by 3,072
        {"prompt": 9000},  # which this disproves
        {"prompt": 3000},
        {"prompt": None, **REFUSED},
        {"prompt": 5000},
        {"prompt": 5000, "model": "ollama/other"},
        {"prompt": 100, "server_window": 8192},
        {"prompt": 100, "server_window": 4096},  # set up anew
        {"prompt": 4000},
        {"prompt": None},
    ]

    def captures(names: str) -> list[Capture]:
        return [
            make_capture(
                id=f"{names}{n}",
                **{
                    "model": MODEL,
                    "usage": None if each["prompt"] is None else {"prompt_tokens": each["prompt"]},
                    **{name: value for name, value in each.items() if name != "prompt"},
                },
            )
            for n, each in enumerate(told)
        ]

    other = project_info(Project.objects.create(slug="other", name="Other"))
    alone = [
        *chain.from_iterable(
            record_calls(
                project=other, captures=[each], caller="key", now=NOW + timedelta(seconds=n)
            )
            for n, each in enumerate(captures("a"))
        )
    ]

    together = record_calls(project=shipped, captures=captures("b"), caller="key", now=NOW)

    assert [each.health for each in together] == [each.health for each in alone]
    assert limit(shipped) == limit(other) == (4096, "server")


def test_nothing_here_depends_on_the_order_of_a_batch(shipped: ProjectInfo) -> None:
    first = make_capture(id="x", model=MODEL, usage={"prompt_tokens": 9000})
    larger = replace(first, id="y", usage={"prompt_tokens": 90_000})
    record_calls(project=shipped, captures=[larger, first], caller="key", now=NOW)

    assert LearnedWindow.objects.get().tokens == 90_000


# what a refusal said, and its code; whether what it taught is still known after an upgrade
TAUGHT = [
    ({"error_message": REFUSED["error_message"]}, True),
    ({"error_message": REFUSED["error_message"], "error_code": "over_budget"}, False),
    ({"error_message": f"16384 tokens ({OWN_WORDS}ollama/tiny, estimated before sending)"}, False),
    ({"error_message": "input length exceeded max context length by 16384 tokens"}, False),
]


@pytest.mark.parametrize(("said", "is_kept"), TAUGHT)
def test_an_upgrade_forgets_windows_that_were_budgets(
    project: ProjectInfo, said: dict[str, Any], is_kept: bool
) -> None:
    told = call(project, None, **{**REFUSED, **said})
    LearnedWindow.objects.all().delete()
    rows = [
        (MODEL, "refusal", told.id),
        (MODEL, "server", told.id),
        ("gone", "refusal", "deleted"),
        ("unnamed", "refusal", ""),
    ]
    LearnedWindow.objects.bulk_create(
        LearnedWindow(
            project_id=project.id,
            model_key=key,
            source=source,
            call_name=name,
            tokens=16_384,
            seen_at=NOW,
        )
        for key, source, name in rows
    )

    migration = import_module("helmdash.records.migrations.0064_windows_of_own_refusals")
    migration.forget(apps, SimpleNamespace(connection=connection))

    kept = {*LearnedWindow.objects.values_list("model_key", "source")}
    others = {(MODEL, "server"), ("gone", "refusal"), ("unnamed", "refusal")}
    assert kept == others | ({(MODEL, "refusal")} if is_kept else set())
