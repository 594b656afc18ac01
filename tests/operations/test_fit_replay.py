"""A kept fit is made again to the byte: under its own budget, and as a live fit under another."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.fitting.prepared import PreparedCatalog, prepare
from helmdash.core.ranking.ranking import PastPlan
from helmdash.core.whatif.fits import (
    NotReplayable,
    ReplayedFit,
    receipt_of,
    replay_fit,
    without_timings,
)
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.operations.fitting.fits import fit_catalog
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.whatif.kept_fits import (
    KeptCatalogs,
    catalog_of,
    forget_catalogs,
    recorded_fit,
)
from helmdash.records.models import Budget, CatalogRevision, Fit, PlanCatalog
from tests.core.catalogs import make_catalog
from tests.factories import NOW
from tests.recording.support import make_ruled_project

MODEL = "openai/gpt-4o"
# Edits of the row, from a room for everything to one for hardly anything.
EDITS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a smaller cap": {"max_catalog_bytes": 6_000},
    "no cap, a small input": {"max_catalog_bytes": 0, "input_tokens": 3_000},
    "one entry": {"max_catalog_bytes": 60},
    "another tier": {"tier": "C", "max_catalog_bytes": 9_000},
    "a catalog that is sent alike": {"supports_prefix_cache": True, "max_catalog_bytes": 30_000},
    "denser tokens": {"chars_per_token": 2.5, "input_tokens": 4_000},
}


@pytest.fixture
def project(db: None) -> ProjectInfo:
    forget_catalogs()
    return make_ruled_project(payload="full")


def fit(project: ProjectInfo, **over: Any) -> Fit:
    given: dict[str, Any] = {
        "model": MODEL,
        "intent": "write a blog post about résumés, then fact check it",
        "catalog": make_catalog(),
        "catalog_name": None,
        "context": {"steps_taken": ["a", "b"]},
        "defaults": None,
        "history": (PastPlan(intent="fact check the post", tools=("pack-3", "blog.publish")),),
        "caller": "owner",
        "now": NOW,
    }
    made = fit_catalog(actor=SHELL, project=project, **{**given, **over})
    return Fit.objects.get(project_id=project.id, name=made.fit_id)


def replayed(project: ProjectInfo, row: Fit, **edit: Any) -> ReplayedFit | NotReplayable:
    kept, prepared = recorded_fit(row), catalog_of(row)
    if isinstance(kept, NotReplayable):
        return kept
    if prepared is None:
        return NotReplayable.NO_CATALOG
    table = budgets.table(project_id=project.id)
    spec = table.row_of(row.model)
    typed = {**edit, "tier": type(spec.tier)(edit["tier"])} if "tier" in edit else edit
    after = table.with_row(replace(spec, **typed))
    return replay_fit(prepared, kept, before=table.lookup(row.model), after=after.lookup(row.model))


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("where", ["inline", "by name"])
def test_a_replay_is_the_live_fit_to_the_byte(
    project: ProjectInfo, where: str, edit: dict[str, Any]
) -> None:
    given: dict[str, Any] = {}
    if where == "by name":
        body = make_catalog()
        import_catalog(actor=SHELL, project_id=project.id, name="tools", body=body, now=NOW)
        given = {"catalog": None, "catalog_name": "tools"}
    row = fit(project, **given)

    found = replayed(project, row, **edit)

    assert isinstance(found, ReplayedFit)
    assert found.is_as_recorded
    assert text(receipt_of(found.before)) == text(without_timings(row.trim))
    Budget.objects.filter(key=MODEL).update(**edit)
    budgets.forget_cache()
    live = fit(project, **given)
    assert text(receipt_of(found.after)) == text(without_timings(live.trim))


def text(receipt: dict[str, object]) -> str:
    """The bytes of a receipt; PostgreSQL gives back members in an order of its own."""
    return json.dumps(receipt, sort_keys=True)


def test_catalogs_in_memory_are_bounded_by_their_bytes_too() -> None:
    small, large = (prepare(parse_catalog(make_catalog(packs=each))) for each in (1, 60))
    made: list[str] = []

    def find(key: tuple[int, str, str]) -> PreparedCatalog:
        made.append(key[1])
        return large if key[1].startswith("large") else small

    kept = KeptCatalogs(find, most=3, most_bytes=large.totals[0] + small.totals[0])
    for name in ("one", "two", "three", "four", "two", "large", "two", "large2"):
        kept.get((1, name, ""))

    # "two" was there each time that it was asked for, until a second large one came.
    assert made == ["one", "two", "three", "four", "large", "large2"]
    assert kept.bytes == large.totals[0] + small.totals[0]
    kept.get((1, "large", ""))
    assert kept.bytes <= large.totals[0] + small.totals[0]


def test_what_is_not_kept_is_not_replayed(project: ProjectInfo) -> None:
    row = fit(project)
    Fit.objects.update(intent="")
    no_intent = replayed(project, Fit.objects.get(pk=row.pk))
    Fit.objects.update(intent="write", inputs=None)
    no_inputs = replayed(project, Fit.objects.get(pk=row.pk))
    PlanCatalog.objects.all().delete()
    forget_catalogs()
    no_catalog = replayed(project, fit_without_catalog(row))

    assert (no_intent, no_inputs, no_catalog) == (
        NotReplayable.NO_INTENT,
        NotReplayable.NO_INPUTS,
        NotReplayable.NO_CATALOG,
    )


def fit_without_catalog(row: Fit) -> Fit:
    Fit.objects.filter(pk=row.pk).update(inputs=row.inputs)
    return Fit.objects.get(pk=row.pk)


def test_a_project_that_keeps_no_texts_keeps_no_catalog_of_a_fit(db: None) -> None:
    row = fit(make_ruled_project(payload="off"))

    assert (row.intent, row.inputs) == ("", None)
    assert not PlanCatalog.objects.exists()
    assert not CatalogRevision.objects.exists()
