"""Suggestions: made from what was recorded, accepted as edits, dismissed for good."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import Capture, CapturedTrim, SentSizes
from helmdash.core.evidence.figures import Figure
from helmdash.core.evidence.suggested import Learned, SuggestionState
from helmdash.core.text.query_terms import parse_query
from helmdash.operations.budgets.editing import change_budget
from helmdash.operations.budgets.lines import store_own_edit
from helmdash.operations.budgets.reverting import revert_edits
from helmdash.operations.evidence import deciding, refreshing, trialling
from helmdash.operations.evidence.deciding import NoSuchSuggestion, SuggestionDecided
from helmdash.operations.jobs import kinds
from helmdash.operations.jobs.running import JobThread
from helmdash.operations.rollups import folding
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.calls.terms import CALL_TERMS
from helmdash.queries.evidence import suggestions
from helmdash.queries.evidence.learned import learned_of
from helmdash.queries.evidence.limits import limits_of_model
from helmdash.queries.line_edits import own_edit
from helmdash.records.models import Budget, Call, Job, LearnedModel, Suggestion
from tests.factories import NOW, make_capture, make_suggestion
from tests.recording.support import make_ruled_project, record

_MODEL = "openai/gpt-4o"


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


def _calls(
    *, cliff: int | None, n: int = 240, until: datetime = NOW, hours: int = 2
) -> list[Capture]:
    """Calls, one each so many hours, of 4 KB to 400 KB, three bytes a token; above the cliff most
    are empty."""
    random = Random(7)
    found = []
    for number in range(n):
        tokens = int(1_500 * 2 ** random.uniform(0, 6))
        is_clean = random.random() < (0.97 if cliff is None or tokens <= cliff else 0.2)
        found.append(
            make_capture(
                id=f"call-{number}",
                conversation=None,
                usage={"prompt_tokens": tokens, "completion_tokens": 50 * is_clean},
                sent=SentSizes(bytes=3 * tokens),
                content="done" if is_clean else "",
                started_at=until - timedelta(hours=hours * number + 1),
            )
        )
    return found


def _open(project: ProjectInfo) -> dict[Figure, suggestions.SuggestionView]:
    refreshing.refresh(project_id=project.id, now=NOW)
    found = suggestions.page(project_id=project.id, state=SuggestionState.OPEN)
    return {each.figure: each for each in found.items}


def test_a_cliff_is_suggested_and_accepted_as_an_ordinary_edit(project: ProjectInfo) -> None:
    record(project, *_calls(cliff=24_576))
    folding.fold_all()
    # Not from the calls: their rows may be gone by then.
    Call.objects.filter(project_id=project.id)._raw_delete("default")

    found = _open(project)
    accepted = deciding.accept(
        actor=SHELL, project_id=project.id, suggestion_id=found[Figure.INPUT_TOKENS].id, now=NOW
    )

    (change,) = accepted.changes
    assert set(found) == {Figure.INPUT_TOKENS, Figure.CHARS_PER_TOKEN}
    assert (change.today, change.suggested) == (100_000, 24_575)
    assert accepted.state is SuggestionState.ACCEPTED
    row = budgets.table(project_id=project.id).row_of(_MODEL)
    assert row.input_tokens == 24_575
    assert row.project is not None
    assert row.evidence.startswith("2026-06-05: input_tokens 24575 (was 100000). 9")
    assert "safe-input-5, 240 calls" in row.evidence
    assert budgets.resolve(project_id=None, model=_MODEL).budget.input_tokens == 100_000
    # What is as suggested is not suggested again, and its effect is measured.
    later = make_capture(conversation=None, started_at=NOW + timedelta(hours=1))
    record(project, later, now=NOW + timedelta(hours=1))
    refreshing.refresh(project_id=project.id, now=NOW + timedelta(hours=2))
    again = suggestions.find(project_id=project.id, suggestion_id=accepted.id)
    assert again is not None
    assert again.state is SuggestionState.ACCEPTED
    assert again.effect is not None
    assert (again.effect.before.calls, again.effect.after.calls) == (240, 1)


@pytest.mark.parametrize("is_tried", [False, True])
def test_what_was_edited_since_is_not_accepted(project: ProjectInfo, is_tried: bool) -> None:
    """Who clicks was shown 100,000, and would have raised the 20,000 of somebody else."""
    record(project, *_calls(cliff=24_576))
    folding.fold_all()
    found = _open(project)[Figure.INPUT_TOKENS]
    if is_tried:
        trialling.begin(actor=SHELL, project_id=project.id, suggestion_id=found.id, now=NOW)
    budget_id = budgets.table(project_id=project.id).lookup(_MODEL).budget_id
    assert budget_id is not None
    edit = {"input_tokens": 20_000}
    change_budget(actor=SHELL, budget_id=budget_id, project_id=project.id, changes=edit)

    with pytest.raises(SuggestionDecided, match="input_tokens is 20000 by now, and was 100000"):
        deciding.accept(actor=SHELL, project_id=project.id, suggestion_id=found.id, now=NOW)
    with pytest.raises(SuggestionDecided, match="on trial" if is_tried else "20000 by now"):
        trialling.begin(actor=SHELL, project_id=project.id, suggestion_id=found.id, now=NOW)

    assert budgets.resolve(project_id=project.id, model=_MODEL).budget.input_tokens == 20_000
    state = Suggestion.objects.get(pk=found.id).state
    assert state == (SuggestionState.TRIAL if is_tried else SuggestionState.OPEN).value


def test_without_a_cliff_nothing_is_suggested_of_the_input(project: ProjectInfo) -> None:
    record(project, *_calls(cliff=None))

    assert Figure.INPUT_TOKENS not in _open(project)
    (learned,) = learned_of(project_id=project.id, model_key=_MODEL, model=_MODEL, now=NOW)
    assert learned.calls == 240
    assert learned.ratios.bytes_per_token == pytest.approx(3, rel=0.01)


def test_months_of_calls_are_learned_from_by_days(project: ProjectInfo) -> None:
    """A model that is busy has 24 times as many hours, which take a second to read."""
    record(project, *_calls(cliff=24_576, hours=6))
    folding.fold_all()

    with CaptureQueriesContext(connection) as asked:
        (learned,) = learned_of(project_id=project.id, model_key=_MODEL, model=_MODEL, now=NOW)

    read = [each["sql"] for each in asked if "records_rollup" in each["sql"]]
    assert len([each for each in read if "UNION ALL" in each]) == 1
    assert (learned.input.ceiling, learned.calls) == (24_575, 240)
    assert (learned.since, learned.until) == (datetime(2026, 4, 6, tzinfo=UTC), NOW)


def test_what_is_accepted_while_the_job_looks_stays_accepted(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(project, *_calls(cliff=24_576))
    one = _open(project)[Figure.INPUT_TOKENS]

    def accept(**asked: Any) -> tuple[Learned, ...]:
        deciding.accept(actor=SHELL, project_id=project.id, suggestion_id=one.id, now=NOW)
        return learned_of(**asked)

    monkeypatch.setattr(refreshing, "learned_of", accept)
    record(project, make_capture(id="another", conversation=None))
    refreshing.refresh(project_id=project.id, now=NOW)
    monkeypatch.undo()
    refreshing.refresh(project_id=project.id, now=NOW)

    found = suggestions.find(project_id=project.id, suggestion_id=one.id)
    assert found is not None
    assert (found.state, found.effect is None) == (SuggestionState.ACCEPTED, False)


def test_what_was_dismissed_comes_back_only_as_another(project: ProjectInfo) -> None:
    record(project, *_calls(cliff=24_576))
    one = _open(project)[Figure.INPUT_TOKENS]

    deciding.dismiss(
        actor=SHELL, project_id=project.id, suggestion_id=one.id, reason="we know", now=NOW
    )

    assert Figure.INPUT_TOKENS not in _open(project)
    with pytest.raises(SuggestionDecided, match="dismissed already by the command line"):
        deciding.accept(actor=SHELL, project_id=project.id, suggestion_id=one.id, now=NOW)
    with pytest.raises(NoSuchSuggestion):
        deciding.accept(actor=SHELL, project_id=project.id + 1, suggestion_id=one.id, now=NOW)
    Suggestion.objects.filter(pk=one.id).update(changes={"input_tokens": 90_000})
    record(project, make_capture(id="another", conversation=None))
    assert Figure.INPUT_TOKENS in _open(project)


def test_what_later_calls_no_longer_show_is_gone(project: ProjectInfo) -> None:
    record(project, *_calls(cliff=24_576))
    one = _open(project)[Figure.INPUT_TOKENS]
    budget = budgets.table(project_id=project.id).row_of(_MODEL)
    Suggestion.objects.filter(pk=one.id).update(model_key="acme/gone")

    _open(project)

    assert budget.input_tokens == 100_000
    gone = suggestions.find(project_id=project.id, suggestion_id=one.id)
    assert gone is not None
    assert gone.state is SuggestionState.GONE


def test_a_window_that_prompts_are_cut_to_is_suggested(project: ProjectInfo) -> None:
    """Growing conversations whose count stays where the server cuts them."""
    for talk in range(4):
        for turn in range(18):
            sent = 4_000 + 3_000 * turn
            tokens = min(sent // 4, 8_000)
            record(
                project,
                make_capture(
                    model="acme/local",
                    conversation=f"talk-{talk}",
                    usage={"prompt_tokens": tokens, "completion_tokens": 50},
                    sent=SentSizes(bytes=sent, messages=2 * turn + 1),
                    started_at=NOW - timedelta(hours=talk, minutes=50 - turn),
                ),
            )

    (learned,) = learned_of(
        project_id=project.id, model_key="acme/local", model="acme/local", now=NOW
    )

    assert learned.window.tokens == 8_000
    refused = make_capture(
        model="acme/local",
        conversation=None,
        usage=None,
        finish_reason=None,
        http_status=400,
        error_message="This model's maximum context length is 8192 tokens.",
    )
    record(project, refused)
    found = limits_of_model(project_id=project.id, model="acme/local", now=NOW)
    told = {each.method: each.value for each in found.items if each.figure == "context_length"}
    assert told == {"refusal": 8_192, "plateau-1": 8_000}


def test_models_of_one_name_are_each_told_of(project: ProjectInfo) -> None:
    """Two upstreams serve a model by one name, with other windows: one was told, the other not so
    much as named."""
    for provider, tokens in (("west", 8192), ("east", 4096)):
        said = f"This model's maximum context length is {tokens} tokens."
        over = {"usage": None, "finish_reason": None, "http_status": 400, "error_message": said}
        record(project, make_capture(model="nemo", provider=provider, conversation=None, **over))

    def told(model: str) -> tuple[str, tuple[str, ...], object]:
        found = limits_of_model(project_id=project.id, model=model, now=NOW)
        return found.model_key, found.others, found.items[0].value

    assert told("nemo") == ("east/nemo", ("west/nemo",), 4096)
    assert told("west/nemo") == ("west/nemo", (), 8192)


def test_one_of_two_accepted_for_a_row_is_reverted_and_the_other_stays(
    project: ProjectInfo,
) -> None:
    first = make_suggestion(project=project)
    second = make_suggestion(
        project=project,
        figure="output_tokens",
        changes={"output_tokens": 2_000},
        today={"output_tokens": 1_500},
    )
    # The row has to be there: the first edit of all adds it.
    change_own = make_suggestion(
        project=project,
        figure="max_catalog_bytes",
        changes={"max_catalog_bytes": 9_000},
        today={"max_catalog_bytes": 0},
    )
    numbers = []
    for each in (change_own, first, second):
        deciding.accept(actor=SHELL, project_id=project.id, suggestion_id=each.pk, now=NOW)
        numbers.append(Budget.history.latest("history_id").history_id)
    row = Budget.objects.get(project_id=project.id)
    before = Budget.history.get(history_id=numbers[0])

    revert_edits(actor=SHELL, project_id=project.id, numbers=[numbers[1]])

    after = Budget.objects.get(project_id=project.id)
    assert all(getattr(after, name) == getattr(before, name) for name in first.changes)
    assert (after.output_tokens, after.evidence) == (2_000, row.evidence)


def test_only_models_with_something_new_are_learned_anew(project: ProjectInfo) -> None:
    """A call of one model, an edit of another's budget, a day: each alone brings its model's turn;
    what waits to be folded is the same before and after."""
    other = "acme/local"
    record(project, *_calls(cliff=24_576))
    record(
        project, *(replace(each, id=f"o-{each.id}", model=other) for each in _calls(cliff=9_000))
    )

    def learned_at(hours: int) -> set[str]:
        now = NOW + timedelta(hours=hours)
        refreshing.refresh(project_id=project.id, now=now)
        rows = LearnedModel.objects.filter(project_id=project.id, learned_at=now)
        return set(rows.values_list("model_key", flat=True))

    assert learned_at(0) == {_MODEL, other}
    assert Suggestion.objects.filter(state="open", figure="input_tokens").count() == 2
    assert learned_at(1) == set()
    folding.fold_all()
    assert learned_at(2) == set()
    record(project, make_capture(id="late", model=other, conversation=None, started_at=NOW))
    assert learned_at(3) == {other}
    folding.fold_all()
    assert learned_at(4) == set()
    found = Suggestion.objects.get(model_key=_MODEL, figure="input_tokens")
    deciding.accept(actor=SHELL, project_id=project.id, suggestion_id=found.pk, now=NOW)
    assert learned_at(5) == {_MODEL}
    assert learned_at(23) == set()
    assert learned_at(29) == {_MODEL, other}


def test_an_edit_by_hand_brings_the_next_look_of_the_job(project: ProjectInfo) -> None:
    """Not the next call: where the suggested value is entered by hand nothing is left to suggest.
    Who cancels that look has the rest of it at the job's usual time."""
    record(project, *_calls(cliff=24_576, until=timezone.now()))
    folding.fold_all()
    thread = JobThread(kinds.LONG[-1:], holder="one")
    Job.objects.create(name="suggestions", due_at=NOW)
    thread.look_once()
    found = Suggestion.objects.get(figure="input_tokens")
    assert found.state == SuggestionState.OPEN.value

    edit = own_edit(project_id=project.id, model=_MODEL, model_key=_MODEL, changes=found.changes)
    store_own_edit(actor=SHELL, project_id=project.id, edit=edit)
    Job.objects.update(outcome="cancelled")
    thread.look_once()
    found.refresh_from_db()
    assert found.state == SuggestionState.OPEN.value
    Job.objects.update(outcome="done")
    thread.look_once()
    found.refresh_from_db()

    assert found.state == SuggestionState.GONE.value
    turns = Job.objects.get().turns
    thread.look_once()
    assert Job.objects.get().turns == turns == 2


def test_each_number_of_a_sentence_leads_to_as_many_calls(project: ProjectInfo) -> None:
    """Shares beside a ceiling of prompts and of catalogs, windows, replies, ways of asking."""
    random = Random(11)
    calls = [*_calls(cliff=24_576)]
    for number in range(400):
        is_json, catalog = random.random() < 0.5, int(2_000 * 2 ** random.uniform(0, 4))
        is_clean = random.random() < (0.95 if catalog < 12_288 else 0.3) * (1.0 if is_json else 0.6)
        calls.append(
            make_capture(
                id=f"plan-{number}",
                model="openai/gpt-4o-mini",
                conversation=None,
                purpose="plan",
                prompt_variant=random.choice(("full_steps", "single_pick")),
                response_format="JSON_object" if is_json else None,
                trim=CapturedTrim(before_bytes=90_000, after_bytes=catalog),
                finish_reason="length" if number % 20 == 0 else "stop",
                decoded=is_clean,
                usage={"prompt_tokens": 1_000, "completion_tokens": 400 + number},
                started_at=NOW - timedelta(hours=number + 1),
            )
        )
    for number in range(60):
        tokens = min(1_000 * (number % 12 + 1), 8_000 - number % 3)
        calls.append(
            make_capture(
                id=f"cut-{number}",
                model="acme/local",
                conversation=f"talk-{number // 12}",
                usage={"prompt_tokens": tokens, "completion_tokens": 50},
                sent=SentSizes(bytes=4_000 * (number % 12 + 1), messages=2 * (number % 12) + 1),
                started_at=NOW - timedelta(hours=9 - number // 12, minutes=50 - number % 12),
            )
        )
    record(project, *calls)
    refreshing.refresh(project_id=project.id, now=NOW)

    found = suggestions.page(project_id=project.id).items

    assert {each.figure.value for each in found} >= {
        "input_tokens", "context_length", "max_catalog_bytes", "wants_strict_json", "tier",
    }  # fmt: skip
    for each in found:
        assert len(each.numbers) >= 2 or each.figure is Figure.CHARS_PER_TOKEN, each.figure
        for told in each.numbers:
            asked = parse_query(told.query, CALL_TERMS.fields).terms
            rows = Call.objects.filter(
                CALL_TERMS.conditions(project.id, asked),
                project_id=project.id,
                started_at__gte=each.since,
                started_at__lt=each.until,
            )
            assert rows.count() == told.calls, (each.why, told)
            assert told.text in each.why
