"""A fit is kept with its Trim and the budget that ruled."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.ranking.ranking import PastPlan
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.operations.fitting.fits import Fitted, NoCatalog, fit_catalog
from helmdash.operations.rollups import folding
from helmdash.operations.rollups.noting import note
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.fitting import fit_uses, fitting, trims
from helmdash.queries.fitting.trim_filters import TrimFilters
from helmdash.records.models import Budget, Fit
from helmdash.records.rollups.fit_facts import fit_facts_of
from tests.factories import NOW, make_capture, record
from tests.plan_rows import add_attempt, make_plan
from tests.recording.support import make_ruled_project

CATALOG = {
    "packs": [
        {
            "name": f"pack-{number}",
            "description": f"Does the work of number {number}. It does so with care and in time.",
            "metadata": {"typical_use": ["now and then"], "limitations": ["none that we know of"]},
        }
        for number in range(30)
    ]
}


@pytest.fixture
def project(db: None) -> ProjectInfo:
    made = make_ruled_project(payload="full")
    Budget.objects.filter(key="openai/gpt-4o").update(max_catalog_bytes=2_500, tier="C")
    return made


def fit(project: ProjectInfo, **over: Any) -> Fitted:
    given: dict[str, Any] = {
        "model": "openai/gpt-4o",
        "intent": "the work of number 7",
        "catalog": CATALOG,
        "catalog_name": None,
        "context": None,
        "defaults": None,
        "history": (),
        "caller": "owner",
        "now": NOW,
    }
    return fit_catalog(actor=SHELL, project=project, **{**given, **over})


def test_a_fit_is_found_again_by_the_id_of_its_answer(project: ProjectInfo) -> None:
    done = fit(project, history=[PastPlan(intent="number 7", tools=("pack-7",))])

    kept = fitting.find(project_id=project.id, fit_id=done.fit_id)

    assert kept is not None
    assert (kept.model, kept.caller, kept.created_at) == ("openai/gpt-4o", "owner", NOW)
    assert kept.after_bytes == done.trim.after_bytes <= 2_500 < kept.before_bytes
    assert kept.fits
    assert [entry["id"] for entry in kept.trim["kept"]] == [e.id for e in done.trim.kept]  # type: ignore[attr-defined]
    assert set(kept.trim) >= {"steps", "kept", "removed", "versions", "timings_ms", "dropped"}
    assert kept.budget["max_catalog_bytes"] == 2_500


def test_the_budget_of_a_kept_fit_stays_as_it_was(project: ProjectInfo) -> None:
    done = fit(project)
    row = Budget.objects.get(key="openai/gpt-4o")
    row.max_catalog_bytes = 9_000
    row.save()

    kept = fitting.find(project_id=project.id, fit_id=done.fit_id)

    assert kept is not None
    assert kept.budget["max_catalog_bytes"] == 2_500
    assert fit(project).budget.max_catalog_bytes == 9_000


@pytest.mark.parametrize(
    ("payload", "intent"),
    [
        ("off", None),  # only its hash
        ("redacted", None),
        ("full", "the work of number 7"),
    ],
)
def test_the_intent_is_kept_only_where_texts_are(
    project: ProjectInfo, payload: str, intent: str | None
) -> None:
    other = make_ruled_project(slug="other", name="Other", payload=payload)

    done = fit(other)

    kept = fitting.find(project_id=other.id, fit_id=done.fit_id)
    assert kept is not None
    assert kept.intent == intent
    assert len(Fit.objects.get(name=done.fit_id).intent_sha) == 16


def test_another_project_does_not_see_it(project: ProjectInfo) -> None:
    stranger = make_ruled_project(slug="other", name="Other")

    done = fit(project)

    assert fitting.find(project_id=stranger.id, fit_id=done.fit_id) is None
    assert trims.page(project_id=stranger.id, filters=TrimFilters()).items == ()


def test_figures_are_of_the_newest_fits_and_the_list_goes_on_behind_them(
    project: ProjectInfo,
    django_assert_num_queries: Any,
    django_assert_max_num_queries: Any,
) -> None:
    def stored(number: int) -> Fit:
        is_cut = number % 100 == 0
        return Fit(
            project_id=project.id,
            name=f"fit-{number}",
            model="openai/gpt-4o" if number else "rare",
            catalog_digest="0" * 64,
            intent_sha="",
            before_bytes=1_000,
            after_bytes=400 if is_cut else 1_000,
            fits=number != 100,
            trim={"steps": [{"label": "lexical.top_n", "entries": 3, "bytes_saved": 600}]}
            if is_cut
            else {"steps": "of another version"},
            budget={},
            created_at=NOW + timedelta(seconds=number),
        )

    Fit.objects.bulk_create(map(stored, range(trims.MOST_READ + 10)), batch_size=200)

    with django_assert_num_queries(2):
        found = trims.page(project_id=project.id, filters=TrimFilters(cut="lexical.top_n"), limit=9)
    totals = found.totals
    assert totals is not None
    assert (totals.is_sample, totals.first_at) == (True, NOW + timedelta(seconds=10))
    assert (totals.all.fits, totals.all.over, totals.all.saved_bytes) == (20, 1, 12_000)
    assert [(cut.name, cut.fits, cut.entries) for cut in totals.cuts] == [("lexical.top_n", 20, 60)]
    names = [fit.id for fit in found.items]
    while found.next:
        found = trims.page(
            project_id=project.id,
            filters=TrimFilters(cut="lexical.top_n"),
            cursor=found.next,
            limit=9,
        )
        names += [fit.id for fit in found.items]
    assert names == [f"fit-{number}" for number in range(2000, -1, -100)]
    rare = trims.page(project_id=project.id, filters=TrimFilters(model="rare"))
    assert (rare.items, rare.totals, rare.next is None) == ((), None, False)
    since = TrimFilters(since=NOW, until=NOW + timedelta(seconds=150))
    exact = trims.page(project_id=project.id, filters=since).totals
    assert exact is not None
    assert (exact.is_sample, exact.all.fits, exact.all.cut) == (False, 150, 2)
    # Of all fits figures are exact, however many there are, and whether they are added up yet.
    note(project.id, [(None, each) for each in fit_facts_of(Fit.objects.all())], now=NOW)
    told = []
    for _ in range(2):
        with django_assert_max_num_queries(11):
            totals = trims.page(project_id=project.id, filters=TrimFilters()).totals
        assert totals is not None
        told.append(totals)
        folding.fold_all()
    assert told[0] == told[1]
    whole = told[0].all
    assert (told[0].is_sample, whole.fits, whole.cut, whole.over) == (False, 2_010, 21, 1)
    assert (whole.before_bytes, whole.saved_bytes) == (2_010_000, 21 * 600)
    assert [(cut.fits, cut.entries, cut.saved_bytes) for cut in told[0].cuts] == [(21, 63, 12_600)]
    assert [(each.name, each.fits) for each in told[0].models] == [
        ("openai/gpt-4o", 2_009),
        ("rare", 1),
    ]


def test_a_fit_leads_to_the_calls_the_plan_and_the_edit_of_its_time(
    project: ProjectInfo, django_assert_max_num_queries: Any
) -> None:
    import_catalog(actor=SHELL, project_id=project.id, name="demo", body=CATALOG, now=NOW)
    row = Budget.objects.get(key="openai/gpt-4o")
    for tier, days in (("B", -2), ("C", -1), ("A", 1)):
        row.tier = tier
        row._history_date = NOW + timedelta(days=days)  # type: ignore[attr-defined]
        row.save()
    done = fit(project, catalog=None)
    add_attempt(make_plan(project, days=0, fit_name=done.fit_id), fit_name=done.fit_id)
    minute = timedelta(minutes=1)
    for name, after in (("early", -5), ("skewed", -0.5), ("used", 1), ("again", 59), ("late", 61)):
        at = NOW + after * minute
        record(make_capture(id=name, fit_id=done.fit_id, started_at=at), project=project)
    record(make_capture(id="other", started_at=NOW + minute), project=project)
    kept = fitting.find(project_id=project.id, fit_id=done.fit_id)
    assert kept is not None
    fit_uses.uses(project_id=project.id, fit=kept)

    with django_assert_max_num_queries(12):
        found = fit_uses.uses(project_id=project.id, fit=kept)

    assert [call.id for call in found.calls] == ["skewed", "used", "again"]
    assert found.plans == ("plan-1",)
    assert found.edit is not None
    assert (found.edit.at, found.edit.budget_id) == (NOW - timedelta(days=1), row.pk)
    assert found.words.keys() == kept.removed_ids
    assert all(words.startswith("Does the work of number") for words in found.words.values())


def test_without_a_catalog_the_current_one_is_fitted(project: ProjectInfo) -> None:
    import_catalog(actor=SHELL, project_id=project.id, name="demo", body=CATALOG, now=NOW)

    inline, stored, named = (
        fit(project),
        fit(project, catalog=None),
        fit(project, catalog=None, catalog_name="demo"),
    )

    assert inline.catalog == stored.catalog == named.catalog
    kept = fitting.find(project_id=project.id, fit_id=stored.fit_id)
    assert kept is not None
    assert kept.catalog_name == "demo"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (None, "send `catalog` or `catalog_name`"),
        ("nowhere", "there is no catalog called nowhere"),
    ],
)
def test_nothing_to_fit_is_said_and_not_stored(
    project: ProjectInfo, name: str | None, sentence: str
) -> None:
    with pytest.raises(NoCatalog, match=sentence):
        fit(project, catalog=None, catalog_name=name)

    assert not Fit.objects.exists()


def test_an_intent_with_characters_that_cannot_be_stored_still_fits(project: ProjectInfo) -> None:
    done = fit(project, intent="number 7\0", catalog={"packs": [{"name": "pack-7\0"}]})

    kept = fitting.find(project_id=project.id, fit_id=done.fit_id)
    assert kept is not None
    assert done.trim.fits
