"""Catalog revisions: an import is a new number, unless nothing changed."""

from __future__ import annotations

from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.catalog.catalog import CatalogError
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.fitting import catalog as catalogs
from helmdash.records.models import CatalogRevision, Project
from tests.factories import NOW
from tests.recording.support import make_ruled_project


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


def body(*packs: str) -> dict[str, Any]:
    return {
        "packs": [{"name": name} for name in packs],
        "pipelines": [{"id": "both", "name": "Both"}],
    }


def put(project: ProjectInfo, value: object, name: str = "demo", **over: Any) -> Any:
    return import_catalog(
        actor=SHELL, project_id=project.id, name=name, body=value, now=NOW, **over
    )


def test_revisions_of_a_name_are_numbered_from_one(project: ProjectInfo) -> None:
    numbers = [put(project, body(*names)).number for names in (["a"], ["a", "b"], ["c"])]
    other = put(project, body("a"), name="other")

    assert numbers == [1, 2, 3]
    assert other.number == 1


def test_the_same_bytes_again_are_the_same_revision(project: ProjectInfo) -> None:
    first = put(project, body("a"))

    again = put(project, body("a"))

    assert (again.revision_id, again.number, again.is_new) == (first.revision_id, 1, False)
    assert CatalogRevision.objects.count() == 1


def test_going_back_to_older_bytes_is_a_new_revision(project: ProjectInfo) -> None:
    put(project, body("a"))
    put(project, body("b"))

    back = put(project, body("a"))

    assert (back.number, back.is_new) == (3, True)


def test_what_was_imported_last_is_in_force(project: ProjectInfo) -> None:
    put(project, body("a"), name="first")
    put(project, body("b"), name="second")
    aside = put(project, body("c"), name="aside", make_current=False)

    current = catalogs.find(project_id=project.id)

    assert current is not None
    assert (current.name, current.packs, current.pipelines) == ("second", 1, 1)
    assert aside.is_new


def test_an_unchanged_import_puts_its_revision_in_force_again(project: ProjectInfo) -> None:
    put(project, body("a"), name="first")
    put(project, body("b"), name="second")

    put(project, body("a"), name="first")

    current = catalogs.find(project_id=project.id)
    assert current is not None
    assert current.name == "first"


def test_a_malformed_catalog_changes_nothing_and_names_the_field(project: ProjectInfo) -> None:
    put(project, body("a"))

    with pytest.raises(CatalogError) as caught:
        put(project, {"packs": [{"name": "a"}, {"description": "nameless"}]})

    assert [error.field for error in caught.value.errors] == ["catalog.packs.1.name"]
    assert CatalogRevision.objects.count() == 1
    assert Project.objects.get(pk=project.id).current_catalog is not None


def test_the_stored_body_is_the_given_one(project: ProjectInfo) -> None:
    given = {"packs": [{"name": "a", "x-extra": {"z": 1, "a": [None, 2.5]}}], "note": "kept"}

    done = put(project, given)

    assert catalogs.body(revision_id=done.revision_id) == given


@pytest.mark.parametrize(
    "odd",
    [
        {"packs": [{"name": "a", "description": "x\0y"}]},
        {"packs": [{"name": "a\0"}]},
        {"packs": [{"name": "a", "x\0": 1}]},
        {"packs": [{"name": "a", "description": "\ud800"}]},
    ],
)
def test_a_catalog_that_cannot_be_stored_as_given_is_refused(
    project: ProjectInfo, odd: object
) -> None:
    with pytest.raises(CatalogError):
        put(project, odd)

    assert not CatalogRevision.objects.exists()
