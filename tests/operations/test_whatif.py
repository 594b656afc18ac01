"""What-ifs: what would have been under edits of budgets, exactly, and nothing of the real ones
changes."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL, Forbidden, MemberRole, Person
from helmdash.core.calls.routes import CallRoute
from helmdash.core.whatif import totals
from helmdash.core.whatif.calls import Judge
from helmdash.core.whatif.edits import BadEdits
from helmdash.operations.budgets.editing import change_budget
from helmdash.operations.whatif import asking, running
from helmdash.operations.whatif.asking import NoSuchWhatIf, WhatIfConflict
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.whatif import items, walks
from helmdash.queries.whatif.items import (
    CALL_FIGURES,
    FIGURES,
    NotByModel,
    UnknownFigure,
    items_of,
)
from helmdash.queries.whatif.kept_fits import catalog_of
from helmdash.queries.whatif.what_ifs import WhatIfView, find_row
from helmdash.records.models import Budget, Call, PlanCatalog, WhatIf
from tests.factories import NOW, make_capture, record
from tests.operations.test_fit_replay import MODEL, fit
from tests.recording.support import make_ruled_project

# A window that is an operator's word, as an edited row's is: the same before and after.
ROW = {
    "context_length": 100_000,
    "input_tokens": 90_000,
    "input_cost_usd_per_mtok": 2.0,
    "output_cost_usd_per_mtok": 10.0,
    "cached_input_cost_usd_per_mtok": 1.0,
}
EDIT = {"context_length": 50_000, "input_tokens": 40_000, "input_cost_usd_per_mtok": 4.0}
PROMPTS = (10_000, 39_000, 46_000, 46_500, 47_000, 47_500, 48_000, 48_500, 49_000, 95_000, None)


@pytest.fixture
def project(db: None) -> ProjectInfo:
    made = make_ruled_project(payload="full")
    Budget.objects.filter(key=MODEL).update(project_id=made.id, **ROW)
    budgets.forget_cache()
    return made


def talk(project: ProjectInfo, *prompts: int | None, name: str = "talk") -> None:
    """A conversation with a call for each prompt."""
    for number, prompt in enumerate(prompts, start=1):
        usage = None if prompt is None else {"prompt_tokens": prompt, "completion_tokens": 100}
        record(
            make_capture(
                id=f"{name}-{number}",
                conversation=name,
                model=MODEL,
                usage=usage,
                started_at=NOW + timedelta(minutes=number),
            ),
            project=project,
        )


def ask(project: ProjectInfo, **over: Any) -> WhatIfView:
    given: dict[str, Any] = {
        "edits": [{"key": MODEL, "changes": EDIT}],
        "title": "Half the window",
        "since": NOW - timedelta(days=1),
        "until": None,
        "now": NOW + timedelta(days=1),
    }
    return asking.ask(actor=SHELL, project_id=project.id, **{**given, **over})


def answered(project: ProjectInfo, **over: Any) -> WhatIfView:
    asked = ask(project, **over)
    running.run_all(lambda words, done, of: None)
    found = asking.cancel(actor=SHELL, project_id=project.id, name=asked.id, now=NOW)
    assert (found.state, found.progress) == ("done", 100)
    return found


def test_levels_are_those_that_recording_gives_under_the_edited_budget(
    project: ProjectInfo,
) -> None:
    talk(project, *PROMPTS)
    before = list(Call.objects.order_by("id").values_list("level", flat=True))

    found = answered(project)

    row = Budget.objects.get(key=MODEL)
    assert {name: getattr(row, name) for name in ROW} == ROW
    change_budget(actor=SHELL, budget_id=row.pk, project_id=project.id, changes=EDIT)
    talk(project, *PROMPTS, name="live")
    after = list(
        Call.objects.filter(name__startswith="live").order_by("id").values_list("level", flat=True)
    )
    expected = Counter(zip(before, after, strict=True))
    assert {(each.was, each.now): each.calls for each in found.calls.levels} == expected
    assert found.calls.over.was == sum((each or 0) > 90_000 for each in PROMPTS)
    assert found.calls.over.now == sum((each or 0) > 40_000 for each in PROMPTS)
    told = [each for each in PROMPTS if each is not None]
    assert found.calls.cost_micro_usd is not None
    assert found.calls.cost_micro_usd.was == sum(each * 2 + 100 * 10 for each in told)
    assert found.calls.cost_micro_usd.now == sum(each * 4 + 100 * 10 for each in told)
    assert [(each.model_key, each.calls) for each in found.calls.models] == [(MODEL, len(PROMPTS))]


def test_care_counts_down_and_clears_once_a_round(project: ProjectInfo) -> None:
    talk(project, *PROMPTS)

    care = answered(project).care

    # Above 45,000 from the third call on: five countdown prompts, then the clear before the ninth.
    assert (care.countdowns.was, care.countdowns.now) == (1, 1)
    assert (care.clears.was, care.clears.now, care.newly_cleared) == (0, 1, 1)
    assert care.looked_at == len(PROMPTS)


def test_fits_are_made_again_and_the_others_are_counted(project: ProjectInfo) -> None:
    fit(project)
    kept = fit(project, intent="make a picture")
    fit(project, intent="x", model="anthropic/claude-sonnet-4")
    type(kept).objects.filter(pk=kept.pk).update(intent="")
    edits = [{"key": MODEL, "changes": {"max_catalog_bytes": 4_000}}]

    found = answered(project, edits=edits).fits

    assert (found.looked_at, found.replayed, found.as_recorded) == (3, 2, 2)
    assert [(each.reason.value, each.fits) for each in found.not_replayed] == [("no_intent", 1)]
    assert (found.changed, found.trimmed.was, found.trimmed.now) == (1, 0, 1)
    assert found.sent_bytes.now < found.sent_bytes.was


def test_fits_that_take_long_end_a_page_early_and_none_is_lost(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [fit(project, now=NOW + timedelta(minutes=n)).name for n in range(3)]
    for module in (walks, items):
        monkeypatch.setattr(module, "_FIT_SECONDS", 0.0)
    asked = answered(project, until=NOW + timedelta(hours=1))
    assert asked.fits.looked_at == 3
    row = find_row(project_id=project.id, name=asked.id)
    assert row is not None
    pages = [items_of(row, "fits", cursor=None, limit=50)]
    while pages[-1].next:
        pages.append(items_of(row, "fits", cursor=pages[-1].next, limit=50))

    assert [each.looked_at for each in pages] == [1, 1, 1]
    assert [each.id for page in pages for each in page.items] == made[::-1]


def test_every_figure_leads_to_what_it_counts(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "MOST_MODELS", 1)
    other = make_capture(
        id="o1",
        model="mistral/large",
        usage={"prompt_tokens": 9},
        started_at=NOW - timedelta(minutes=1),
    )
    record(other, project=project)
    talk(project, *PROMPTS)
    talk(project, 46_000, 46_000, name="other")
    fit(project)
    edits = [{"key": MODEL, "changes": {**EDIT, "max_catalog_bytes": 4_000}}]
    asked = answered(project, edits=edits)
    row = find_row(project_id=project.id, name=asked.id)
    assert row is not None

    counted = {(figure, ""): asked.totals.counts.get(figure, 0) for figure in FIGURES}
    for model, own in asked.totals.models.items():
        counted |= {(figure, model): own.get(figure, 0) for figure in CALL_FIGURES}
    assert {MODEL, totals.OTHER_MODELS} == set(asked.totals.models)
    for (figure, model), count in counted.items():
        found, cursor, pages = [], None, 0
        while pages == 0 or cursor is not None:
            page = items_of(row, figure, model=model, cursor=cursor, limit=3)
            found += [each.id for each in page.items]
            cursor, pages = page.next, pages + 1
        assert len(set(found)) == len(found) == count, (figure, model)

    with pytest.raises(NotByModel, match="fits is not"):
        items_of(row, "fits", model=MODEL, cursor=None, limit=3)
    with pytest.raises(UnknownFigure, match="level:other"):
        items_of(row, "nothing", cursor=None, limit=3)


def test_a_catalog_that_a_page_did_not_find_is_found_once_it_is_stored(
    project: ProjectInfo,
) -> None:
    row = fit(project)
    stored = list(PlanCatalog.objects.all())
    PlanCatalog.objects.all().delete()
    on_a_page = catalog_of(row)
    PlanCatalog.objects.bulk_create(stored)

    found = answered(project)

    assert on_a_page is None
    assert found.totals.counts["replayed"] == 1


def test_a_run_that_breaks_off_goes_on_and_counts_nothing_twice(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(project, *PROMPTS)
    fit(project)
    whole = answered(project).totals.to_json()
    monkeypatch.setattr(running, "_SAVE_SECONDS", -1.0)
    asked = ask(project)

    class Stopped(Exception):
        pass

    for stop_after in (1, 2, 1, 5):
        steps = 0

        def tell(words: str, done: int, of: int, most: int = stop_after) -> None:
            nonlocal steps
            steps += 1
            if steps > most:
                raise Stopped

        try:
            running.run_all(tell)
        except Stopped:
            continue

    found = WhatIf.objects.get(name=asked.id)
    assert (found.state, found.totals) == ("done", whole)


def test_projects_take_turns_and_count_the_same(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(project, *PROMPTS)
    whole = WhatIf.objects.get(name=answered(project).id).totals
    other = make_ruled_project(slug="other")
    asked = [ask(project), ask(project), ask(other)]
    monkeypatch.setattr(running, "_TURN_SECONDS", -1.0)
    turns: list[str] = []

    running.run_all(lambda words, done, of: turns.append(words.partition(":")[0]))

    first, second, others = (each.id for each in asked)
    assert list(dict.fromkeys(turns)) == [first, others, second]
    assert turns[:4] == [first, others, first, others]
    assert WhatIf.objects.get(name=first).totals == whole
    assert WhatIf.objects.filter(state="done").count() == 4


def test_one_that_is_cancelled_keeps_what_it_has_and_runs_no_more(project: ProjectInfo) -> None:
    talk(project, *PROMPTS)
    asked = ask(project)

    found = asking.cancel(actor=SHELL, project_id=project.id, name=asked.id, now=NOW)
    running.run_all(lambda words, done, of: None)

    assert (found.state, found.cancelled_by) == ("cancelled", "the command line")
    assert WhatIf.objects.get(name=asked.id).started_at is None


def test_a_new_row_of_a_free_model_has_the_figures_of_a_free_route(project: ProjectInfo) -> None:
    key = f"{MODEL}:free"
    lowered = budgets.table(project_id=project.id).lookup(key)
    asked = ask(project, edits=[{"key": key, "changes": {"output_tokens": 900}}])

    asking.apply(actor=SHELL, project_id=project.id, name=asked.id, now=NOW)

    row = Budget.objects.get(key=key, project_id=project.id)
    told = (row.tier, row.input_tokens, row.max_catalog_bytes, row.wants_strict_json)
    assert told == ("C", lowered.input_tokens, lowered.max_catalog_bytes, False)
    assert row.output_tokens == 900


def test_applying_is_an_ordinary_edit_that_may_be_made_once(project: ProjectInfo) -> None:
    asked = ask(project, edits=[{"key": MODEL, "changes": EDIT}, {"key": "new/", "changes": EDIT}])

    found = asking.apply(actor=SHELL, project_id=project.id, name=asked.id, now=NOW)

    assert found.applied_by == "the command line"
    own = {row.key: row for row in Budget.objects.filter(project_id=project.id)}
    assert set(own) == {MODEL, "new/"}
    for row in own.values():
        assert {name: getattr(row, name) for name in EDIT} == EDIT
        assert asked.id in row.evidence
        assert row.history.count() >= 1
    with pytest.raises(WhatIfConflict, match="applied it already"):
        asking.apply(actor=SHELL, project_id=project.id, name=asked.id, now=NOW)


def test_what_was_edited_since_is_not_overwritten(project: ProjectInfo) -> None:
    asked = ask(project)
    row = Budget.objects.get(key=MODEL)
    changes = {"input_tokens": 77_000}
    change_budget(actor=SHELL, budget_id=row.pk, project_id=project.id, changes=changes)

    with pytest.raises(WhatIfConflict, match="edited"):
        asking.apply(actor=SHELL, project_id=project.id, name=asked.id, now=NOW)


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([], "edits: name at least one row"),
        ([{"key": MODEL, "changes": {}}], "edits.0.changes: name a figure"),
        ([{"key": MODEL, "changes": {"key": "x"}}], "edits.0.changes.key: is no figure"),
        ([{"key": MODEL, "changes": {"tier": "Z"}}], "edits.0.changes.tier: must be one of A, B"),
        ([{"key": MODEL, "changes": {"input_tokens": 0}}], "must be between 1 and"),
        ([{"key": MODEL, "changes": {"input_tokens": 1.5}}], "must be a whole number"),
        ([{"key": MODEL, "changes": {"input_tokens": None}}], "may not be empty"),
        ([{"key": MODEL, "changes": {"input_tokens": True}}], "must be a number"),
        ([{"key": MODEL, "changes": {"enabled": 1}}], "must be true or false"),
        ([{"key": MODEL, "changes": {"critical_max_tokens": 200_000}}], "is above the limit"),
        ([{"key": MODEL, "changes": EDIT}, {"key": "OpenAI/GPT-4o", "changes": EDIT}], "twice"),
        ([{"key": f"m{at}", "changes": EDIT} for at in range(51)], "at most 50 rows"),
    ],
)
def test_edits_that_no_budget_could_have_are_refused(
    project: ProjectInfo, edits: list[Any], said: str
) -> None:
    with pytest.raises(BadEdits) as caught:
        ask(project, edits=edits)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("over", "is_governed"),
    [
        ({"model": "fast", "provider": "lab"}, True),
        # A name of the upstream's own, and what its reply says of the model.
        ({"model": "best", "provider": "lab", "upstream_model": "fast-2024-08-06"}, True),
        ({"model": "fast", "provider": "lab", "upstream_model": "/models/f.gguf"}, True),
        ({"model": "fast", "provider": "", "upstream_model": "fast"}, False),
        # Another program chose the upstream: recording judged by the model as told.
        ({"model": "fast", "provider": "lab", "routes": (CallRoute.API,)}, False),
    ],
)
def test_a_call_is_judged_by_the_row_that_knows_its_upstreams_model(
    project: ProjectInfo, over: dict[str, Any], is_governed: bool
) -> None:
    given = {"routes": (CallRoute.GATEWAY,), "budget_model": "lab/fast" if is_governed else None}
    Budget.objects.filter(project_id=project.id, key=MODEL).update(key="lab/fast")
    budgets.forget_cache()
    usage = {"prompt_tokens": 47_000, "completion_tokens": 1}
    record(make_capture(**{**given, "usage": usage, "started_at": NOW, **over}))
    table = budgets.table(project_id=project.id)
    span = walks.Span(project_id=project.id, since=None, until=NOW + timedelta(days=1))

    ((pair,), _) = walks.call_step(span, Judge(table, table), ())

    assert (pair.was.budget.input_tokens == ROW["input_tokens"]) is is_governed
    assert pair.was.health.level == Call.objects.get().level


def test_who_may_do_what(project: ProjectInfo) -> None:
    viewer = Person(name="v", roles={project.id: MemberRole.VIEWER})
    asked = ask(project)

    for act in (asking.cancel, asking.apply):
        with pytest.raises(Forbidden):
            act(actor=viewer, project_id=project.id, name=asked.id, now=NOW)
        with pytest.raises(NoSuchWhatIf):
            act(actor=SHELL, project_id=project.id, name="whatif_none", now=NOW)
    for _ in range(asking.MOST_WAITING - 1):
        ask(project)
    with pytest.raises(WhatIfConflict, match="wait or run already"):
        ask(project)


def test_the_published_list_can_be_tried_before_it_is_used(project: ProjectInfo) -> None:
    model = "perplexity/sonar-pro"
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100}
    call = make_capture(id="grey", model=model, usage=usage, started_at=NOW)
    record(call, project=project)

    found = answered(project, edits=[{"key": "", "changes": {"uses_published_list": True}}])

    assert [(each.was, each.now, each.calls) for each in found.calls.levels] == [
        ("unknown", "healthy", 1)
    ]
    assert found.calls.priced.was == 0
    assert found.calls.priced.now == 1
    asking.apply(actor=SHELL, project_id=project.id, name=found.id, now=NOW)
    assert budgets.table(project_id=project.id).lookup(model).limit_source == "published"
