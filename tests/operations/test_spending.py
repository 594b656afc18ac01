"""Who spends: what each client's calls took, from rollups, and what nobody told stays unknown."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.core.access.permissions import SHELL
from helmdash.operations.rollups.folding import fold_all
from helmdash.operations.rollups.rebuilding import rebuild
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets.budgets import forget_cache
from helmdash.queries.calls.spending import MOST_CLIENTS, ClientSpending, Spending, spending
from helmdash.records.models import Budget, RollupState
from tests.factories import NOW, make_capture
from tests.recording.support import make_ruled_project, record

PRICED, PLAIN = "openai/gpt-4o", "acme/tiny"


@pytest.fixture
def project(db: None) -> ProjectInfo:
    project = make_ruled_project()
    # 2 and 8 USD for a million tokens.
    Budget.objects.filter(key=PRICED).update(
        input_cost_usd_per_mtok=2, output_cost_usd_per_mtok=8, cached_input_cost_usd_per_mtok=1
    )
    forget_cache()
    return project


def used(
    project: ProjectInfo, client: str | None, model: str, *usages: object, **over: object
) -> None:
    record(
        project,
        *(make_capture(client_name=client, model=model, usage=each, **over) for each in usages),
    )


def tokens(prompt: int, completion: int = 0, cached: int | None = None) -> dict[str, object]:
    usage: dict[str, object] = {"prompt_tokens": prompt, "completion_tokens": completion}
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return usage


def found(project: ProjectInfo, **over: object) -> Spending:
    told = spending(project_id=project.id, **over)  # type: ignore[arg-type]
    assert told is not None
    return told


def by_client(project: ProjectInfo, **over: object) -> dict[str | None, ClientSpending]:
    return {each.client: each for each in found(project, **over).clients}


def test_each_client_has_its_tokens_and_cost_by_the_prices_of_its_models(
    project: ProjectInfo,
) -> None:
    used(project, "codex", PRICED, tokens(1_000_000, 500_000), tokens(200_000, 0, cached=100_000))
    used(project, "codex", PLAIN, tokens(9_000, 1_000))
    used(project, "claude-code", PRICED, tokens(500_000, 1))
    used(project, None, PLAIN, tokens(300))

    told = by_client(project)

    assert list(told) == ["codex", "claude-code", None]
    codex = told["codex"]
    assert (codex.calls, codex.prompt_tokens, codex.completion_tokens) == (3, 1_209_000, 501_000)
    assert codex.cost_usd == pytest.approx(2 + 4 + 0.2 + 0.1)
    # Of the calls whose model has a price.
    assert (codex.priced, codex.told) == (2, 3)
    assert (codex.cached_share, codex.cache_told) == (0.5, 1)
    assert [each.model_key for each in codex.models] == [PRICED, PLAIN]
    assert told["claude-code"].cost_usd == pytest.approx(1.000008)
    assert told[None].cost_usd is None


def test_what_no_call_reported_is_unknown_and_not_nothing(project: ProjectInfo) -> None:
    used(project, "codex", PRICED, None, None)

    (codex,) = found(project).clients

    assert (codex.calls, codex.prompt_tokens, codex.completion_tokens) == (2, None, None)
    assert (codex.cost_usd, codex.priced, codex.cached_share) == (None, 0, None)


def test_a_model_by_any_spelling_and_a_range_narrow_them(project: ProjectInfo) -> None:
    used(project, "codex", PRICED, tokens(10))
    used(project, "codex", PLAIN, tokens(20))
    used(project, "aider", PLAIN, tokens(40), started_at=NOW - timedelta(days=40))

    assert {
        name: each.prompt_tokens for name, each in by_client(project, model="GPT-4o").items()
    } == {"codex": 10}
    week = by_client(project, since=NOW - timedelta(days=7))
    assert {name: each.prompt_tokens for name, each in week.items()} == {"codex": 30}


def test_of_many_clients_those_with_most_tokens_are_told(project: ProjectInfo) -> None:
    for number in range(MOST_CLIENTS + 3):
        used(project, f"made-up-{number:02}", PLAIN, tokens(100 + number))

    told = found(project)

    assert (told.of, told.calls) == (MOST_CLIENTS + 3, MOST_CLIENTS + 3)
    assert [each.client for each in told.clients] == [
        f"made-up-{number:02}" for number in reversed(range(3, MOST_CLIENTS + 3))
    ]


def test_no_call_is_read_for_it(project: ProjectInfo) -> None:
    for age in (0, 1, 30, 300):
        used(project, "codex", PRICED, tokens(10), started_at=NOW - timedelta(days=age))
    fold_all()
    spending(project_id=project.id)

    with CaptureQueriesContext(connection) as queries:
        told = found(project)

    assert told.clients[0].calls == 4
    # How far it is counted, the rollups with what waits, and whether budgets were edited.
    assert len(queries) == 3
    assert not any("records_call" in each["sql"] for each in queries)


def test_before_older_calls_are_counted_it_says_nothing(project: ProjectInfo) -> None:
    used(project, "codex", PRICED, tokens(10))
    fold_all()
    RollupState.objects.update_or_create(project_id=project.id, defaults={"version": 5})

    assert spending(project_id=project.id) is None
    rebuild(actor=SHELL, project_id=project.id, progress=lambda _: None, anew=True)
    assert found(project).calls == 1
