"""One model in every figure however it is spelt, and the program behind each call."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from helmdash.core.calls.capture import Capture
from helmdash.core.conversations.clients import Client
from helmdash.operations.budgets.shipped import load_budgets
from helmdash.operations.recording.calls import record_calls
from helmdash.queries import distinct_values, models, plans
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.conversations import conversations, listing
from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.records.models import Call, Conversation, PlanRecord
from helmdash.records.querysets import MOST_VALUES
from tests.factories import NOW, make_capture

pytestmark = pytest.mark.django_db

SPELT = [
    ("gpt-4o", None),
    ("OpenAI/GPT-4o", None),
    ("openai/gpt-4o", "openai"),
    ("gpt-4o", "openai"),
]
OTHER = [("openai/gpt-4o-mini", None), ("openrouter/openai/gpt-4o", "openrouter")]


def _record(project: ProjectInfo, captures: list[Capture]) -> None:
    record_calls(project=project, captures=captures, caller="key", now=NOW)


@pytest.fixture
def spelt(project: ProjectInfo) -> ProjectInfo:
    """A project that knows the shipped spellings."""
    load_budgets()
    return project


@pytest.fixture
def recorded(spelt: ProjectInfo) -> ProjectInfo:
    project = spelt
    _record(
        project,
        [
            make_capture(
                id=f"c{number}",
                model=model,
                provider=provider,
                conversation=f"talk-{number}",
                started_at=NOW + timedelta(seconds=number),
            )
            for number, (model, provider) in enumerate([*SPELT, *OTHER])
        ],
    )
    return project


@pytest.mark.parametrize("asked", [model for model, _ in SPELT] + ["GPT-4O[1m]", "azure/gpt-4o"])
def test_every_spelling_finds_the_calls_of_all(recorded: ProjectInfo, asked: str) -> None:
    own = {"c0", "c1", "c2", "c3"}
    found = call_listing.page(project_id=recorded.id, filters=CallFilters(model=asked))
    talks = listing.page(project_id=recorded.id, filters=ConversationFilters(model=asked), limit=9)

    assert own <= {item.id for item in found.items} <= own | {"c5"}
    assert "c4" not in {item.id for item in found.items}
    assert {f"talk-{each[1:]}" for each in own} <= {item.id for item in talks.items}


def test_a_call_keeps_the_spelling_it_came_with(recorded: ProjectInfo) -> None:
    found = calls.find(project_id=recorded.id, call_id="c1")

    assert found is not None
    assert (found.call.model, found.call.model_key) == ("OpenAI/GPT-4o", "openai/gpt-4o")


def test_figures_have_one_row_for_one_model(recorded: ProjectInfo) -> None:
    rows = {row.model_key: row for row in models.model_rows(project_id=recorded.id).rows}

    assert set(rows) == {"openai/gpt-4o", "openai/gpt-4o-mini", "openrouter/openai/gpt-4o"}
    row = rows["openai/gpt-4o"]
    assert row.calls == len(SPELT)
    assert row.spellings == ("gpt-4o", "openai/gpt-4o", "OpenAI/GPT-4o")  # the newest first
    assert row.model == "gpt-4o"
    recent = models.recent_calls(project_id=recorded.id, model="openai/gpt-4o")
    assert {call.id for call in recent} == {"c0", "c1", "c2", "c3"}
    assert distinct_values.values(project_id=recorded.id, column="model_key") == tuple(sorted(rows))


def test_a_name_without_its_provider_finds_it_everywhere(project: ProjectInfo) -> None:
    _record(project, [make_capture(id="a", model="house-model", provider="house")])

    for asked in ("house-model", "house/house-model", "HOUSE/house-model"):
        found = call_listing.page(project_id=project.id, filters=CallFilters(model=asked))
        assert [item.id for item in found.items] == ["a"], asked
    none = call_listing.page(
        project_id=project.id, filters=CallFilters(model="elsewhere/house-model")
    )
    assert none.items == ()


def test_a_model_is_found_among_more_than_a_list_shows(project: ProjectInfo) -> None:
    others = [f"a/model-{number}" for number in range(MOST_VALUES)]
    _record(project, [make_capture(id=model, model=model) for model in others])
    _record(project, [make_capture(id="last", model="house-model", provider="house")])
    plans_of = [*others, "house/house-model", "House/house-model"]
    PlanRecord.objects.bulk_create(
        PlanRecord(
            project_id=project.id, name=f"plan-of-{model}", kind="plan", model=model,
            outcome="ok", started_at=NOW,
        )
        for model in plans_of
    )  # fmt: skip

    found = call_listing.page(project_id=project.id, filters=CallFilters(model="house-model"))
    planned = plans.page(project_id=project.id, now=NOW, model="house-model")

    assert [item.id for item in found.items] == ["last"]
    assert {item.model for item in planned.items} == {"house/house-model", "House/house-model"}


def test_plans_are_found_by_any_spelling(spelt: ProjectInfo) -> None:
    for number, model in enumerate(["gpt-4o", "openai/gpt-4o", "openai/gpt-5"]):
        PlanRecord.objects.create(
            project_id=spelt.id, name=f"plan-{number}", kind="plan", model=model,
            outcome="ok", started_at=NOW,
        )  # fmt: skip

    found = plans.page(project_id=spelt.id, now=NOW, model="OPENAI/gpt-4o")

    assert {item.id for item in found.items} == {"plan-0", "plan-1"}


def test_what_was_recorded_before_gets_its_key(recorded: ProjectInfo) -> None:
    wanted = dict(Call.objects.values_list("name", "model_key"))
    talks = dict(Conversation.objects.values_list("name", "model_key"))
    Call.objects.update(model_key=None)
    Conversation.objects.update(model_key=None)

    import_module("helmdash.records.migrations.0009_models_clients_windows").name_models(apps, None)

    assert dict(Call.objects.values_list("name", "model_key")) == wanted
    again = dict(Conversation.objects.values_list("name", "model_key"))
    assert {name for name in talks if talks[name] != again[name]} <= {"talk-0", "talk-3"}


def test_clients_are_kept_and_found(project: ProjectInfo) -> None:
    _record(
        project,
        [
            make_capture(id="a", conversation="one", client_name="curl", client_version="8.5.0"),
            make_capture(id="b", conversation="two", client_name="codex"),
            make_capture(id="c", conversation="two", client_name="claude-code", client_window=10),
            make_capture(id="d", conversation="three"),
        ],
    )

    def found(**filters: Any) -> list[str]:
        page = listing.page(project_id=project.id, filters=ConversationFilters(**filters), limit=9)
        return sorted(item.id for item in page.items)

    by_client = call_listing.page(project_id=project.id, filters=CallFilters(client="Codex"))
    assert [item.id for item in by_client.items] == ["b"]
    assert by_client.items[0].client == Client(name="codex")
    assert found(client="curl") == ["one"]
    assert found(client="claude-code") == ["two"]  # by its newest call
    assert found(client="codex") == []
    assert found(min_calls=2) == ["two"]
    assert found(min_calls=1) == ["one", "three", "two"]
    assert found(min_calls=3) == []
    assert distinct_values.values(project_id=project.id, column="client_name") == (
        "claude-code", "codex", "curl",
    )  # fmt: skip
    view = conversations.standing(project_id=project.id, conversation_id="two")
    assert view is not None
    assert (view.client, view.client_window) == (Client(name="claude-code"), 10)
