"""Trials of suggestions: begun, looked at, stopped, decided; and what they rule meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.core.access.permissions import SHELL
from helmdash.core.budgets.trials import Arm, told, unit_of
from helmdash.core.calls.capture import Capture
from helmdash.core.evidence.suggested import SuggestionState
from helmdash.core.evidence.trialling import TrialState
from helmdash.operations.budgets.editing import change_budget
from helmdash.operations.care import advance
from helmdash.operations.evidence import deciding, refreshing, trialling
from helmdash.operations.evidence.trialling import TrialConflict
from helmdash.operations.fitting.assembly import find_prompt_budget
from helmdash.operations.fitting.fits import fit_catalog
from helmdash.operations.planning.asking import Ask, read_question
from helmdash.operations.retention.erasing import erase_conversation
from helmdash.pages.parts.budgets.suggestions import shown
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.evidence import suggestions
from helmdash.queries.evidence.suggestions import SuggestionView
from helmdash.records.access.keyed_hash import hash_text
from helmdash.records.models import Budget, Suggestion, Trial, TrialCall
from tests.factories import NOW, make_capture, make_suggestion
from tests.recording.support import make_ruled_project, record

_MODEL = "openai/gpt-4o"
_CATALOG = {"packs": [{"name": "write", "description": "Write a file."}], "pipelines": []}


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


def _begin(project: ProjectInfo, **over: object) -> SuggestionView:
    suggestion = make_suggestion(project=project)
    given: dict[str, object] = {"share": 0.5, "conversations": 40, "now": NOW, **over}
    return trialling.begin(
        actor=SHELL,
        project_id=project.id,
        suggestion_id=suggestion.pk,
        **given,  # type: ignore[arg-type]
    )


def _names(project: ProjectInfo, arm: Arm, n: int = 1) -> list[str]:
    """Conversations of one arm of the trial that runs."""
    rules = budgets.table(project_id=project.id)
    found = []
    for number in range(1_000):
        ruled = rules.for_conversation(f"talk-{number}").lookup(_MODEL).trial
        if ruled is not None and ruled.arm is arm:
            found.append(f"talk-{number}")
    return found[:n]


def _call(name: str | None, number: int, *, is_clean: bool = True, **over: object) -> Capture:
    given: dict[str, object] = {
        "id": f"{name}-{number}",
        "conversation": name,
        "usage": {"prompt_tokens": 1_000, "completion_tokens": 50 * is_clean},
        "content": "done" if is_clean else "",
        "started_at": NOW + timedelta(minutes=number),
    }
    return make_capture(**{**given, **over})


def _look(project: ProjectInfo, *, minutes: int = 60) -> SuggestionView:
    trialling.look(now=NOW + timedelta(minutes=minutes))
    return _shown(project)


def _shown(project: ProjectInfo) -> SuggestionView:
    return suggestions.page(project_id=project.id).items[0]


def test_a_conversation_has_its_arms_budget_everywhere(project: ProjectInfo) -> None:
    _begin(project)
    for arm, input_tokens in ((Arm.TODAY, 100_000), (Arm.SUGGESTED, 24_575)):
        (name,) = _names(project, arm)

        fitted = fit_catalog(
            actor=SHELL,
            project=project,
            model=_MODEL,
            intent="write",
            catalog=_CATALOG,
            catalog_name=None,
            context=None,
            defaults=None,
            history=(),
            caller="",
            now=NOW,
            conversation=name,
        )
        asked = Ask(
            kind="plan", user_intent="write", model=_MODEL, catalog=_CATALOG, conversation=name
        )
        question = read_question(project=project, ask=asked, caller="", plan_id="p", now=NOW)

        assert fitted.budget.input_tokens == question.budget.input_tokens == input_tokens
        assert fitted.budget.trial is not None
        assert fitted.budget.trial.arm is arm
    # Who says nothing of a conversation has today's, and is in no trial.
    assert budgets.table(project_id=project.id).lookup(_MODEL).trial is None
    assert find_prompt_budget(project=project, model=_MODEL, budget_tokens=None).key != ""


def test_levels_and_care_are_by_the_arm(project: ProjectInfo) -> None:
    suggestion = make_suggestion(
        project=project,
        figure="context_length",
        changes={"context_length": 20_000},
        today={"context_length": 128_000},
    )
    trialling.begin(
        actor=SHELL, project_id=project.id, suggestion_id=suggestion.pk, share=0.5, now=NOW
    )
    levels = {}
    for arm in Arm:
        (name,) = _names(project, arm)
        (answer,) = record(project, _call(name, 1, usage={"prompt_tokens": 19_000}))
        step = advance(project=project, conversation=name, now=NOW + timedelta(minutes=2))
        levels[arm] = (answer.health.level.value, step.action)

    assert levels[Arm.SUGGESTED] == ("critical", "record_prompt")
    assert levels[Arm.TODAY] == ("healthy", "none")


def test_what_each_arm_came_to_is_counted_by_the_calls_own_arm(project: ProjectInfo) -> None:
    Budget.objects.filter(project__isnull=True, key=_MODEL).update(
        input_cost_usd_per_mtok=2.0, output_cost_usd_per_mtok=10.0
    )
    _begin(project)
    today, suggested = _names(project, Arm.TODAY, 3), _names(project, Arm.SUGGESTED, 2)
    record(
        project,
        *[_call(name, n, is_clean=n != 1) for name in today for n in (1, 2, 3, 4)],
        *[_call(name, n) for name in suggested for n in (1, 2)],
        _call(None, 1),
        _call(suggested[0], 0, started_at=NOW - timedelta(minutes=1), id="before"),
        # As a gateway told it, which looked the budget up a moment before the trial began.
        _call(suggested[0], 9, trial=""),
    )

    trial = _look(project, minutes=10).trial

    assert trial is not None
    assert trial.state is TrialState.RUNNING
    assert trial.today is not None
    assert trial.suggested is not None
    found = trial.today
    assert (found.conversations, found.calls, found.clean, found.rate) == (3, 12, 9, 0.75)
    assert found.low is not None
    assert found.low < 0.75
    assert (found.prompt_tokens, found.completion_tokens) == (12_000, 450)
    assert (trial.suggested.conversations, trial.suggested.calls, trial.suggested.clean) == (
        2,
        4,
        4,
    )
    assert trial.difference is not None
    assert trial.difference.points == 0.25
    # The very calls.
    for which, n in ((":today", 12), (":suggested", 4), ("", 16)):
        filters = CallFilters(trial=f"{trial.id}{which}")
        listed = call_listing.page(project_id=project.id, filters=filters, limit=50)
        assert len(listed.items) == n
    erase_conversation(actor=SHELL, project=project, conversation=today[0], now=NOW)
    assert TrialCall.objects.count() == 12


def test_harm_stops_a_trial_and_all_have_todays_budget_again(project: ProjectInfo) -> None:
    _begin(project, conversations=10_000)
    today, suggested = _names(project, Arm.TODAY, 25), _names(project, Arm.SUGGESTED, 25)
    record(project, *[_call(name, n) for name in today for n in (1, 2)])
    record(project, *[_call(name, n, is_clean=n == 1) for name in suggested for n in (1, 2)])

    found = _look(project)

    assert found.trial is not None
    assert found.trial.state is TrialState.STOPPED
    assert found.state is SuggestionState.TRIAL  # somebody decides
    rules = budgets.table(project_id=project.id)
    assert rules.for_conversation(suggested[0]).lookup(_MODEL).input_tokens == 100_000
    # Calls that were under way are stored in the arm that ruled them.
    ruled = Trial.objects.get()
    assert told(None, suggested[0]) == ""
    record(project, _call(suggested[0], 8, trial=f"{ruled.pk}:suggested:{'0' * 16}"))
    assert TrialCall.objects.filter(unit=hash_text(project.id, "0" * 16)).count() == 1
    # Names cannot be tried on a copy of the database.
    unkeyed = [unit_of(ruled.pk, name) for name in (*today, *suggested)]
    assert not TrialCall.objects.filter(unit__in=unkeyed).exists()
    deciding.dismiss(
        actor=SHELL, project_id=project.id, suggestion_id=found.id, reason="Worse.", now=NOW
    )
    assert _shown(project).state is SuggestionState.DISMISSED


@pytest.mark.parametrize(("end", "minutes"), [({"conversations": 40}, 5), ({"days": 1}, 24 * 60)])
def test_a_trial_ends_by_itself(project: ProjectInfo, end: dict[str, int], minutes: int) -> None:
    _begin(project, **{"conversations": None, **end})
    names = [*_names(project, Arm.TODAY, 20), *_names(project, Arm.SUGGESTED, 20)]
    record(project, *[_call(name, 1) for name in names[:-1]])

    assert _look(project, minutes=minutes - 1).trial.state is TrialState.RUNNING  # type: ignore[union-attr]
    record(project, _call(names[-1], 1))
    found = _look(project, minutes=minutes)

    assert found.trial is not None
    assert found.trial.state is TrialState.FINISHED
    assert found.trial.ended_at == NOW + timedelta(minutes=minutes)


def test_a_decision_ends_a_trial(project: ProjectInfo) -> None:
    found = _begin(project)
    record(project, _call(_names(project, Arm.SUGGESTED)[0], 1))

    accepted = deciding.accept(
        actor=SHELL, project_id=project.id, suggestion_id=found.id, now=NOW + timedelta(hours=1)
    )

    assert accepted.trial is not None
    assert accepted.trial.state is TrialState.DECIDED
    assert accepted.trial.suggested is not None
    assert accepted.trial.suggested.calls == 1
    assert budgets.resolve(project_id=project.id, model=_MODEL).budget.input_tokens == 24_575


def test_an_edit_of_the_figure_ends_a_trial(project: ProjectInfo) -> None:
    found = _begin(project)
    _edit(project, {"chars_per_token": 3.0})
    other = _look(project, minutes=1)
    assert other.trial is not None
    assert other.trial.state is TrialState.RUNNING  # both arms have that edit

    _edit(project, {"input_tokens": 90_000})
    ended = _look(project, minutes=2)

    assert ended.trial is not None
    assert ended.trial.state is TrialState.DECIDED
    assert ended.trial.ended_at == NOW + timedelta(minutes=2)
    assert ended.state is SuggestionState.TRIAL
    standing = shown(ended).trial
    assert standing is not None
    assert "somebody edited the figure" in standing.standing
    assert _names(project, Arm.SUGGESTED) == []
    dismissed = deciding.dismiss(
        actor=SHELL, project_id=project.id, suggestion_id=found.id, reason="Edited.", now=NOW
    )
    assert dismissed.state is SuggestionState.DISMISSED


def _edit(project: ProjectInfo, changes: dict[str, object]) -> None:
    row = Budget.objects.get(key=_MODEL, project=None)
    change_budget(actor=SHELL, budget_id=row.pk, project_id=project.id, changes=changes)


def test_calls_are_counted_before_a_transaction_begins(project: ProjectInfo) -> None:
    """SQLite has one writer: everybody would wait for a count of many calls."""
    found = _begin(project)
    record(project, _call(_names(project, Arm.SUGGESTED)[0], 1))
    with CaptureQueriesContext(connection) as asked:
        _look(project)
        deciding.accept(actor=SHELL, project_id=project.id, suggestion_id=found.id, now=NOW)

    depths, depth = [], 0
    for statement in (each["sql"] for each in asked.captured_queries):
        depth += statement.startswith("SAVEPOINT") - statement.startswith("RELEASE")
        if "GROUP BY t.arm" in statement:
            depths.append(depth)
    assert depths == [0, 0]


def test_what_is_on_trial_is_not_made_anew(project: ProjectInfo) -> None:
    _begin(project)

    refreshing.refresh(project_id=project.id, now=NOW)

    assert _shown(project).state is SuggestionState.TRIAL


def test_no_two_trials_of_one_model_and_three_at_most(project: ProjectInfo) -> None:
    _begin(project)
    another = make_suggestion(project=project, figure="tier", changes={"tier": "C"})
    with pytest.raises(TrialConflict, match=_MODEL):
        trialling.begin(actor=SHELL, project_id=project.id, suggestion_id=another.pk, now=NOW)
    first = Suggestion.objects.order_by("pk")[0]
    with pytest.raises(deciding.SuggestionDecided, match="on trial already"):
        trialling.begin(actor=SHELL, project_id=project.id, suggestion_id=first.pk, now=NOW)
    for n in range(2, 5):
        today = {"input_tokens": 16_000}  # the fallback's
        other = make_suggestion(project=project, model_key=f"m{n}", model=f"m{n}", today=today)
        if n < 4:
            trialling.begin(actor=SHELL, project_id=project.id, suggestion_id=other.pk, now=NOW)
            continue
        with pytest.raises(TrialConflict, match="3 trials"):
            trialling.begin(actor=SHELL, project_id=project.id, suggestion_id=other.pk, now=NOW)


def test_recording_costs_no_statement_more_without_a_trial(project: ProjectInfo) -> None:
    """And one more with one: the rows of the calls that are in it."""

    def statements(number: int) -> int:
        with CaptureQueriesContext(connection) as asked:
            record(project, _call("talk-1", number))
        return len(asked)

    statements(1)
    without = statements(2)
    begun = _begin(project)
    statements(3)  # reads the table anew
    within = statements(4)
    deciding.dismiss(
        actor=SHELL, project_id=project.id, suggestion_id=begun.id, reason="A test.", now=NOW
    )
    statements(5)

    # What SQLite inserts in bulk is not counted.
    assert within <= without + 1
    assert statements(6) == without
