"""Whose word a row's window is once a project has a copy of the row, by every door that makes one.

A price or a tier says nothing of the window: what servers and refusals tell of it counts as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL, MemberRole, Person
from helmdash.core.budgets.health import assess
from helmdash.core.budgets.windows import with_room_of
from helmdash.core.whatif.calls import Judge
from helmdash.operations.budgets.editing import create_budget
from helmdash.operations.budgets.lines import change_lines
from helmdash.operations.budgets.reverting import revert_edits
from helmdash.operations.budgets.rows import RowEdit, edit_rows
from helmdash.operations.budgets.shipped import load_budgets
from helmdash.operations.evidence import deciding
from helmdash.operations.whatif import asking
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.line_edits import Lines, Subject, lines_of_row, try_lines
from helmdash.queries.whatif.what_ifs import find_row, judge_of
from helmdash.records.models import Budget
from tests.factories import NOW, make_capture, make_suggestion, record
from tests.recording.support import make_ruled_project

OLLAMA, UNKNOWN, GPT, TOLD = "ollama/tiny", "acme/zed", "openai/gpt-4o", "nemo"
LIMITS = {
    OLLAMA: (3_072, "budget"),
    UNKNOWN: (None, None),
    GPT: (128_000, "context_length"),
    TOLD: (32_768, "server"),
}
Door = Callable[[ProjectInfo, str, Mapping[str, Any]], None]


@pytest.fixture
def project(db: None) -> ProjectInfo:
    made = make_ruled_project()
    load_budgets(update=True)
    for model in LIMITS:
        window = 32_768 if model == TOLD else None
        usage = {"prompt_tokens": 100, "completion_tokens": 1}
        call = make_capture(id=model, model=model, usage=usage, server_window=window)
        record(call, project=made)
    return made


def in_the_table(project: ProjectInfo, model: str, changes: Mapping[str, Any]) -> None:
    row = budgets.table(project_id=project.id).row_of(model)
    assert row.budget_id is not None
    editor = Person(name="ed", roles={project.id: MemberRole.EDITOR})
    edit = RowEdit(budget_id=row.budget_id, changes=changes)
    edit_rows(actor=editor, project_id=project.id, edits=[edit])


def applied_what_if(project: ProjectInfo, key: str, changes: Mapping[str, Any]) -> Judge:
    """Ask what an edit of a row would do, and make it: the budgets that were compared."""
    asked = asking.ask(
        actor=SHELL,
        project_id=project.id,
        edits=[{"key": key, "changes": changes}],
        title="",
        since=None,
        until=None,
        now=NOW,
    )
    row = find_row(project_id=project.id, name=asked.id)
    assert row is not None
    judge = judge_of(row)
    asking.apply(actor=SHELL, project_id=project.id, name=asked.id, now=NOW)
    return judge


def by_a_what_if(project: ProjectInfo, model: str, changes: Mapping[str, Any]) -> None:
    expected = applied_what_if(project, model, changes).now.lookup(model)
    found = budgets.table(project_id=project.id).lookup(model)
    assert replace(found, budget_id=None, evidence="") == replace(
        expected, budget_id=None, evidence=""
    )


def by_a_suggestion(project: ProjectInfo, model: str, changes: Mapping[str, Any]) -> None:
    row = budgets.table(project_id=project.id).row_of(model)
    today = {name: getattr(row, name) for name in changes}
    made = make_suggestion(
        project=project,
        model=model,
        model_key=model,
        figure=next(iter(changes)),
        changes=dict(changes),
        today=today,
    )
    deciding.accept(actor=SHELL, project_id=project.id, suggestion_id=made.pk, now=NOW)


def limit(project: ProjectInfo, model: str) -> tuple[int | None, str | None]:
    budget = budgets.table(project_id=project.id).lookup(model)
    return budget.limit_tokens, budget.limit_source


def refuse(project: ProjectInfo, model: str, tokens: int) -> None:
    refused = make_capture(
        id=f"refused-{model}",
        model=model,
        status="error",
        http_status=400,
        usage=None,
        error_message=f"This model's maximum context length is {tokens} tokens. You sent 200000.",
    )
    record(refused, project=project)


def subject_of(project: ProjectInfo, model: str) -> Subject:
    return Subject(
        model=model,
        model_key=model,
        client_window=None,
        health=assess(100, budgets.table(project_id=project.id).lookup(model)),
        at=NOW,
    )


def take_back(project: ProjectInfo) -> None:
    """The newest edit."""
    newest = Budget.history.latest("history_id")
    revert_edits(actor=SHELL, project_id=project.id, numbers=[newest.history_id])


@pytest.mark.parametrize("model", LIMITS)
@pytest.mark.parametrize("door", [in_the_table, by_a_what_if, by_a_suggestion])
def test_another_figure_leaves_the_window_to_those_who_told_it(
    project: ProjectInfo, door: Door, model: str
) -> None:
    door(project, model, {"chars_per_token": 3.1})

    table = budgets.table(project_id=project.id)
    assert table.lookup(model).chars_per_token == 3.1
    assert limit(project, model) == LIMITS[model]
    refuse(project, model, 2_048)
    assert limit(project, model) == (2_048, "refusal")


@pytest.mark.parametrize("is_operators", [False, True])
def test_another_figure_gives_a_prompt_no_more_room(
    project: ProjectInfo, is_operators: bool
) -> None:
    """The fallback's ceiling gives way to the window that a local server tells, unless an operator
    has set it. So does that of a copy."""
    if is_operators:
        Budget.objects.get(key="", project=None).save()
    ceilings = []
    for _ in range(2):
        ceilings.append(with_room_of(budgets.table(project_id=project.id).lookup(TOLD)))
        by_a_what_if(project, TOLD, {"chars_per_token": 3.1 + len(ceilings)})

    assert [each.input_tokens for each in ceilings] == [16_000 if is_operators else 32_768] * 2


@pytest.mark.parametrize(
    ("model", "changes", "after"),
    [
        (OLLAMA, {"context_length": 4_096}, (4_096, "context_length")),
        (OLLAMA, {"input_tokens": 3_000}, (3_000, "budget")),  # without lengths: its window
        (UNKNOWN, {"input_tokens": 24_575}, (24_575, "budget")),
        (GPT, {"context_length": 64_000}, (64_000, "context_length")),
        # What a server told is no lower for a lower ceiling of prompts.
        (TOLD, {"input_tokens": 24_575}, (32_768, "context_length")),
    ],
)
def test_an_edit_of_the_window_is_an_operators_word(
    project: ProjectInfo, model: str, changes: dict[str, Any], after: tuple[int, str]
) -> None:
    # Another figure before it, so that the row that is edited is a copy already.
    by_a_suggestion(project, model, {"chars_per_token": 3.1})
    by_a_suggestion(project, model, changes)

    assert limit(project, model) == after
    refuse(project, model, 2_048)
    assert limit(project, model) == after
    take_back(project)
    assert budgets.table(project_id=project.id).lookup(model).chars_per_token == 3.1
    assert limit(project, model) == (2_048, "refusal")


@pytest.mark.parametrize("model", LIMITS)
@pytest.mark.parametrize("caution", [None, 1_000])
def test_a_line_that_is_moved_leaves_the_window_to_those_who_told_it(
    project: ProjectInfo, model: str, caution: int | None
) -> None:
    """The panel shows the window in force: it is sent along, whatever was moved. With nothing moved
    that confirms it, but where nobody knows one."""
    subject = subject_of(project, model)
    begun = lines_of_row(project_id=project.id, subject=subject)
    lines = replace(begun, caution=caution)
    told = try_lines(project_id=project.id, subject=subject, lines=lines).after
    change_lines(actor=SHELL, project=project, subject=subject, lines=lines)

    tokens = LIMITS[model][0]
    assert told.limit_tokens == limit(project, model)[0] == tokens
    refuse(project, model, 2_048)
    is_confirmed = lines == begun and tokens is not None
    assert limit(project, model)[0] == (tokens if is_confirmed else 2_048)


def test_a_line_that_only_fits_into_the_window_that_was_told_brings_it_along(
    project: ProjectInfo,
) -> None:
    subject = subject_of(project, TOLD)
    lines = Lines(caution=25_000, critical=None, window=LIMITS[TOLD][0])
    assert not try_lines(project_id=project.id, subject=subject, lines=lines).problems
    change_lines(actor=SHELL, project=project, subject=subject, lines=lines)

    refuse(project, TOLD, 2_048)
    assert limit(project, TOLD) == (32_768, "context_length")


@pytest.mark.parametrize("model", [UNKNOWN, TOLD])
def test_a_longer_reply_tells_no_window_where_nobody_knows_one(
    project: ProjectInfo, model: str
) -> None:
    by_a_suggestion(project, model, {"output_tokens": 5_000})

    assert limit(project, model) == LIMITS[model]


def test_an_edit_that_is_taken_back_gives_the_word_back(project: ProjectInfo) -> None:
    """To whoever had it: here an operator, whose word it was before."""
    by_a_suggestion(project, GPT, {"chars_per_token": 3.1})
    for length in (64_000, 32_000):
        in_the_table(project, GPT, {"context_length": length})
    refuse(project, GPT, 2_048)

    take_back(project)
    assert limit(project, GPT) == (64_000, "context_length")
    take_back(project)  # the edit that took one back
    assert limit(project, GPT) == (32_000, "context_length")


def test_a_shipped_row_whose_edit_is_taken_back_is_shipped(project: ProjectInfo) -> None:
    row = Budget.objects.get(key=GPT, project=None)
    row.context_length = 64_000
    row.save()
    refuse(project, GPT, 2_048)
    assert limit(project, GPT) == (64_000, "context_length")

    take_back(project)

    assert limit(project, GPT) == (2_048, "refusal")


def test_a_copy_that_is_saved_as_it_is_confirms_its_window(project: ProjectInfo) -> None:
    by_a_suggestion(project, GPT, {"chars_per_token": 3.1})
    refuse(project, GPT, 2_048)
    assert limit(project, GPT) == (2_048, "refusal")

    Budget.objects.get(project=project.id).save()

    assert limit(project, GPT) == LIMITS[GPT]


def test_figures_of_the_fallback_are_no_window_that_is_confirmed(project: ProjectInfo) -> None:
    by_a_suggestion(project, UNKNOWN, {"chars_per_token": 3.1})

    Budget.objects.get(project=project.id).save()

    assert limit(project, UNKNOWN) == (None, None)


def test_to_delete_a_row_and_to_bring_it_back_confirms_nothing(project: ProjectInfo) -> None:
    refuse(project, GPT, 2_048)
    by_a_suggestion(project, GPT, {"chars_per_token": 3.1})
    numbers = []
    for key in (GPT, OLLAMA):
        row = Budget.objects.filter(key__startswith=key[:6]).latest("id")
        row.delete()
        numbers.append(Budget.history.latest("history_id").history_id)

    revert_edits(actor=SHELL, project_id=project.id, numbers=numbers)

    assert limit(project, GPT) == (2_048, "refusal")
    refuse(project, OLLAMA, 2_048)
    assert limit(project, OLLAMA) == (2_048, "refusal")


def test_a_red_line_holds_where_the_window_is_unknown_and_fits_into_one_that_was_told(
    project: ProjectInfo,
) -> None:
    for model in (UNKNOWN, TOLD):
        changes = {"critical_max_tokens": 15_000, "optimal_max_tokens": 12_000}
        by_a_what_if(project, model, changes)

    def lines_of(model: str) -> tuple[int | None, int, int | None]:
        found = budgets.table(project_id=project.id).lookup(model)
        return found.limit_tokens, found.optimal_max_tokens, found.critical_max_tokens

    assert lines_of(UNKNOWN) == (None, 12_000, 15_000)
    assert lines_of(TOLD) == (32_768, 12_000, 15_000)
    refuse(project, TOLD, 14_000)
    assert lines_of(TOLD) == (14_000, 12_000, 12_600)


def test_a_rows_window_that_was_typed_with_it_is_an_operators(project: ProjectInfo) -> None:
    """Also where it is the shipped row's: somebody wrote it down for the project."""
    shipped = Budget.objects.get(key=GPT, project=None)
    create_budget(
        actor=SHELL, project_id=project.id, values={**shipped.to_core().stored(), "tier": "B"}
    )
    refuse(project, GPT, 2_048)

    assert limit(project, GPT) == LIMITS[GPT]
