"""What an edit of a budget is said to do beforehand is what it then does, by every door: previews,
what-ifs, suggestions and trials, whichever row governs the model and whoever told its window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from django.db import transaction

from helmdash.core.access.permissions import SHELL, Actor, MemberRole, Person
from helmdash.core.budgets.budgets import EffectiveBudget, MatchRule
from helmdash.core.budgets.health import assess
from helmdash.core.budgets.trials import Arm
from helmdash.operations.budgets.editing import create_budget
from helmdash.operations.budgets.lines import change_lines
from helmdash.operations.budgets.rows import RowEdit, edit_rows
from helmdash.operations.budgets.shipped import load_budgets
from helmdash.operations.evidence import deciding, trialling
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budget_use, budgets
from helmdash.queries.evidence.limits_after import limits_after
from helmdash.queries.evidence.suggestions import view_of
from helmdash.queries.line_edits import Subject, lines_of_row, try_lines
from helmdash.records.models import Suggestion
from tests.factories import NOW, make_capture, make_suggestion, record
from tests.operations.test_whose_window import applied_what_if
from tests.recording.support import make_ruled_project

OWN, COPIED, UNKNOWN = "acme/own", "acme/copied", "acme/zed"
MODELS = (
    "openai/gpt-4o",
    "anthropic/claude-sonnet-4-5[1m]",
    "gemini/gemini-2.5-pro",  # an alias leads to its row
    "deepseek/deepseek-r1:free",
    "ollama/tiny",
    UNKNOWN,
    OWN,
    COPIED,
)
CHANGES: tuple[Mapping[str, int], ...] = (
    {"context_length": 6_000},
    {"input_tokens": 2_500},
    {"output_tokens": 700},
    {"optimal_max_tokens": 1_800},
    {"critical_max_tokens": 2_900, "optimal_max_tokens": 1_900},
)
LINES = {
    "optimal_max_tokens": "caution",
    "critical_max_tokens": "critical",
    "context_length": "window",
}
REFUSED = {
    "status": "error",
    "http_status": 400,
    "usage": None,
    "error_message": "This model's maximum context length is 4096 tokens. You sent 200000.",
}
TOLD: Mapping[str, Mapping[str, Any]] = {
    "nobody": {},
    "server": {"server_window": 8_192},
    "refusal": REFUSED,
    "disproved": {"usage": {"prompt_tokens": 2_000_000, "completion_tokens": 1}},
}
Changes = Mapping[str, Any]
# What was said of the model's budget after the edit, which has been made.
Door = Callable[[ProjectInfo, str, Changes], EffectiveBudget]


@pytest.fixture
def project(db: None) -> ProjectInfo:
    made = make_ruled_project()
    load_budgets(update=True)
    values = {"key": OWN, "input_tokens": 30_000, "output_tokens": 900, "tier": "B"}
    create_budget(actor=SHELL, project_id=made.id, values=values)
    by_lines(made, COPIED, {"optimal_max_tokens": 1_500})
    return made


def effective(project: ProjectInfo, model: str) -> EffectiveBudget:
    table = budgets.table(project_id=project.id)
    return table.lookup(model, key=table.key_of(model))


def by_lines(project: ProjectInfo, model: str, changes: Changes) -> EffectiveBudget:
    today = effective(project, model)
    subject = Subject(
        model=model,
        model_key=budgets.table(project_id=project.id).key_of(model),
        client_window=None,
        health=assess(1, today),
        at=NOW,
    )
    begun = lines_of_row(project_id=project.id, subject=subject)
    lines = replace(begun, **{LINES[name]: value for name, value in changes.items()})
    told = try_lines(project_id=project.id, subject=subject, lines=lines)
    change_lines(actor=SHELL, project=project, subject=subject, lines=lines)
    assert told.before == today
    return told.after


def by_a_what_if(project: ProjectInfo, model: str, changes: Changes) -> EffectiveBudget:
    table, today = budgets.table(project_id=project.id), effective(project, model)
    key = table.key_of(model)
    judge = applied_what_if(project, table.key_to_edit(model), changes)
    assert figures(judge.was.lookup(model, key=key)) == figures(today)
    return judge.now.lookup(model, key=key)


def in_the_table(actor: Actor, *, is_of_all: bool) -> Door:
    """The page tells what holds for a model of the row's very key."""

    def door(project: ProjectInfo, model: str, changes: Changes) -> EffectiveBudget:
        number = budgets.table(project_id=project.id).row_of(model).budget_id
        assert number is not None
        row = budgets.find(project_id=project.id, budget_id=number)
        assert row is not None
        spec = replace(row.budget, **changes)
        if row.project is None and not is_of_all:
            spec = replace(spec, budget_id=None, project=str(project.id))
        asked = [(row, row.budget), (row, spec)]
        same, told = budget_use.effects_of(project_id=project.id, now=NOW, rows=asked)
        assert same.before == same.after == told.before
        edit = RowEdit(budget_id=number, changes=changes)
        edit_rows(actor=actor, project_id=project.id, edits=[edit])
        after = budgets.table(project_id=project.id).lookup(row.budget.key)
        assert figures(told.after) == figures(after)
        return effective(project, model)

    return door


def suggest(project: ProjectInfo, model: str, changes: Changes) -> Suggestion:
    today = effective(project, model)
    return make_suggestion(
        project=project,
        model=model,
        model_key=budgets.table(project_id=project.id).key_of(model),
        figure=next(iter(changes)),
        changes=dict(changes),
        today={name: getattr(today, name) for name in changes},
    )


def accept(project: ProjectInfo, made: Suggestion) -> None:
    deciding.accept(actor=SHELL, project_id=project.id, suggestion_id=made.pk, now=NOW)


def by_a_suggestion(project: ProjectInfo, model: str, changes: Changes) -> EffectiveBudget:
    made, before = suggest(project, model, changes), effective(project, model)
    told = limits_after(project_id=project.id, found=[view_of(made)])
    accept(project, made)
    after = effective(project, model)
    is_told = (
        after.limit_tokens not in (None, before.limit_tokens) and "context_length" not in changes
    )
    assert [each.limit for each in told.values()] == [after.limit_tokens] * is_told
    return after


def by_a_trial(project: ProjectInfo, model: str, changes: Changes) -> EffectiveBudget:
    made, before = suggest(project, model, changes), effective(project, model)
    trialling.begin(actor=SHELL, project_id=project.id, suggestion_id=made.pk, share=0.5, now=NOW)
    table = budgets.table(project_id=project.id)
    found = {}
    for number in range(40):
        budget = table.for_conversation(f"c{number}").lookup(model, key=made.model_key)
        assert budget.trial is not None
        found[budget.trial.arm] = budget
    assert figures(found[Arm.TODAY]) == figures(before)
    accept(project, made)
    return found[Arm.SUGGESTED]


def by_an_editor(project: ProjectInfo, model: str, changes: Changes) -> EffectiveBudget:
    editor = Person(name="ed", roles={project.id: MemberRole.EDITOR})
    return in_the_table(editor, is_of_all=False)(project, model, changes)


DOORS: Mapping[str, Door] = {
    "lines": by_lines,
    "what-if": by_a_what_if,
    "table": in_the_table(SHELL, is_of_all=True),
    "an editor's table": by_an_editor,
    "suggestion": by_a_suggestion,
    "trial": by_a_trial,
}


def figures(budget: EffectiveBudget) -> EffectiveBudget:
    """All that holds for the model, without which row it is of and why."""
    return replace(
        budget,
        budget_id=None,
        project=None,
        key="",
        rule=MatchRule.EXACT,
        evidence="",
        trial=None,
    )


@contextmanager
def taken_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    budgets.forget_cache()


def is_of(door: str, changes: Changes) -> bool:
    if door == "lines":
        return set(changes) <= set(LINES)
    return door not in ("suggestion", "trial") or "optimal_max_tokens" not in changes


@pytest.mark.one_database  # 900 edits; whose word a window is, test_whose_window.py asks of both
@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("door", DOORS)
def test_what_is_said_beforehand_is_what_happens(
    project: ProjectInfo, door: str, told: str
) -> None:
    for model, changes in product(MODELS, CHANGES):
        if not is_of(door, changes):
            continue
        with taken_back():
            usage = {"prompt_tokens": 1_000, "completion_tokens": 1}
            call = make_capture(**{"id": "told", "model": model, "usage": usage, **TOLD[told]})
            record(call, project=project)

            said = DOORS[door](project, model, changes)

            now = effective(project, model)
            assert figures(said) == figures(now), (model, changes)
            assert said.limit_source == now.limit_source
            explained = budgets.resolve(project_id=project.id, model=model).budget
            assert (explained.limit_tokens, explained.limit_source) == (
                now.limit_tokens,
                now.limit_source,
            )
