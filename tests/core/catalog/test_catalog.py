"""Reading a catalog: strict about names, tolerant about everything else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings

from helmdash.core.catalog.catalog import Catalog, CatalogError, EntryKind, parse_catalog
from tests.core.catalogs import catalogs, make_pack, make_pipeline


def errors_of(value: object) -> dict[str, str]:
    with pytest.raises(CatalogError) as caught:
        parse_catalog(value)
    return {error.field: error.message for error in caught.value.errors}


def only_entry(member: str, entry: object) -> Catalog:
    return parse_catalog({member: [entry]})


def test_entries_come_packs_first_in_the_order_given() -> None:
    catalog = parse_catalog(
        {
            "pipelines": [make_pipeline("builtin.b"), make_pipeline("builtin.a")],
            "packs": [make_pack("z.last"), make_pack("a.first")],
        }
    )

    found = [(entry.kind, entry.id) for entry in catalog.entries]

    assert found == [
        (EntryKind.PACK, "z.last"),
        (EntryKind.PACK, "a.first"),
        (EntryKind.PIPELINE, "builtin.b"),
        (EntryKind.PIPELINE, "builtin.a"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        {},  # no list at all
        {"packs": []},  # an empty list
        {"packs": None, "pipelines": None},  # the null of clients with nil lists
        {"policy": "read me first"},  # only members nobody described
    ],
)
def test_a_catalog_may_be_empty(value: dict[str, Any]) -> None:
    assert parse_catalog(value).entries == ()


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], "catalog"),  # not an object
        ("packs", "catalog"),
        ({"packs": {}}, "catalog.packs"),  # not a list
        ({"packs": "blog.publish"}, "catalog.packs"),
        ({"pipelines": 3}, "catalog.pipelines"),
        ({"packs": ["blog.publish"]}, "catalog.packs.0"),  # an entry that is no object
        ({"packs": [make_pack(), None]}, "catalog.packs.1"),
        ({"packs": [{}]}, "catalog.packs.0.name"),  # no name
        ({"packs": [make_pack(" \t")]}, "catalog.packs.0.name"),  # a blank one
        ({"packs": [{"name": 7}]}, "catalog.packs.0.name"),  # not text
        ({"pipelines": [{"name": "Blog"}]}, "catalog.pipelines.0.id"),  # no id
        ({"pipelines": [{"id": "b"}]}, "catalog.pipelines.0.name"),  # no name
        ({"packs": [{"name": "a", "x": float("nan")}]}, "catalog"),  # not JSON
        ({"packs": [{"name": "a\ud800"}]}, "catalog"),  # half a surrogate pair
    ],
)
def test_what_cannot_be_named_is_refused_with_its_place(value: object, field: str) -> None:
    assert list(errors_of(value)) == [field]


def test_all_faults_are_told_at_once() -> None:
    found = errors_of({"packs": [{}, {"name": ""}], "pipelines": [{"id": None, "name": None}]})

    assert list(found) == [
        "catalog.packs.0.name",
        "catalog.packs.1.name",
        "catalog.pipelines.0.id",
        "catalog.pipelines.0.name",
    ]


@pytest.mark.parametrize(
    ("catalog", "field", "named"),
    [
        # two packs
        ({"packs": [make_pack("a.b"), make_pack("a.b")]}, "catalog.packs.1.name", "a.b"),
        # two pipelines
        (
            {"pipelines": [make_pipeline("p"), make_pipeline("p")]},
            "catalog.pipelines.1.id",
            "p",
        ),
        # a plan could not tell these apart either
        (
            {"packs": [make_pack("same")], "pipelines": [make_pipeline("same")]},
            "catalog.pipelines.0.id",
            "same",
        ),
    ],
)
def test_duplicates_are_refused_by_name(catalog: object, field: str, named: str) -> None:
    found = errors_of(catalog)

    assert f'"{named}" is already used' in found[field]


def test_names_that_differ_in_case_or_spaces_are_two_names() -> None:
    packs = [make_pack("a.b"), make_pack("A.B"), make_pack("a.b ")]

    assert len(parse_catalog({"packs": packs}).entries) == 3


def test_pipelines_may_share_a_display_name() -> None:
    pipelines = [make_pipeline("one", name="Blog"), make_pipeline("two", name="Blog")]

    assert len(parse_catalog({"pipelines": pipelines}).entries) == 2


@pytest.mark.parametrize("odd", [None, 3, True, [], {}, ["a"], "text"])
def test_metadata_of_any_type_is_carried(odd: object) -> None:
    entry = only_entry("packs", {"name": "a.b", "metadata": odd, "description": odd}).entries[0]

    assert entry.raw["metadata"] == odd
    assert entry.metadata_texts("accepts") == ()
    assert entry.metadata_text("typical_use") == ""
    assert entry.description == (odd if isinstance(odd, str) else "")


def test_supersedes_and_step_packs_are_read_tolerantly() -> None:
    metadata = {
        "supersedes": ["blog.publish", 3, None],
        "steps": [{"pack": "doc.parse"}, "odd", {"pack": 4}, {"id": "x"}],
    }

    entry = only_entry("pipelines", make_pipeline(metadata=metadata)).entries[0]

    assert entry.supersedes == ("blog.publish",)
    assert entry.step_packs == ("doc.parse",)


@settings(max_examples=40, deadline=None)
@given(catalog=catalogs(max_entries=12))
def test_reading_changes_nothing(catalog: dict[str, Any]) -> None:
    before = copy.deepcopy(catalog)

    parsed = parse_catalog(catalog)

    assert catalog == before
    assert parsed.raw is catalog
