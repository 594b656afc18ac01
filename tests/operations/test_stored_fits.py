"""A fit is kept with its Trim and the budget that ruled."""

from __future__ import annotations

from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.ranking.ranking import PastPlan
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.operations.fitting.fits import Fitted, NoCatalog, fit_catalog
from helmdash.queries import fitting
from helmdash.queries.access import ProjectInfo
from helmdash.records.models import Budget, Fit
from tests.factories import NOW
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
    assert fitting.page(project_id=stranger.id).items == ()


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
