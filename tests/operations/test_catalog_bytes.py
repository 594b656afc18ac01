"""A stored catalog is the bytes that were given, on either database."""

from __future__ import annotations

import json

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.text.tokens import compact_json
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.queries.fitting import catalog
from helmdash.records.models import CatalogRevision, Project
from tests.factories import NOW, make_project


@pytest.mark.django_db
def test_keys_keep_their_order_and_numbers_their_spelling() -> None:
    given = json.loads(
        '{"packs":[{"zebra":1e20,"name":"b.two","metadata":{"b":1.0,"a":[2]}},{"name":"a.one"}],'
        '"about":"z first","pipelines":[]}'
    )
    project = make_project()

    done = import_catalog(actor=SHELL, project_id=project.id, name="own", body=given, now=NOW)

    stored = catalog.body(revision_id=done.revision_id)
    assert compact_json(stored) == compact_json(given)
    info = catalog.find(project_id=project.id, name="own")
    assert info is not None
    assert compact_json(catalog.prepared(revision=info).catalog.raw) == compact_json(given)


@pytest.mark.django_db
def test_an_id_that_is_given_again_does_not_bring_back_the_old_catalog() -> None:
    project = make_project()
    first = import_catalog(
        actor=SHELL, project_id=project.id, name="own", body=_one("first"), now=NOW
    )
    assert _names(project.id) == ["first"]

    Project.objects.update(current_catalog=None)
    CatalogRevision.objects.all().delete()
    second = import_catalog(
        actor=SHELL,
        project_id=project.id,
        name="own",
        body=_one("second"),
        now=NOW,
        make_current=False,
    )
    CatalogRevision.objects.filter(pk=second.revision_id).update(id=first.revision_id)

    assert _names(project.id) == ["second"]


def _one(name: str) -> object:
    return {"packs": [{"name": name}], "pipelines": []}


def _names(project_id: int) -> list[str]:
    info = catalog.find(project_id=project_id, name="own")
    assert info is not None
    return [entry.name for entry in catalog.prepared(revision=info).catalog.entries]
