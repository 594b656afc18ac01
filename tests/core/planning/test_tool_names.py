"""The names models call tools by, and the one entry each stands for."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.catalog.catalog import Catalog, parse_catalog
from helmdash.core.planning.plans import PIPELINE_RUN
from helmdash.core.planning.tool_names import (
    ToolNames,
    canonical,
    client_name,
    is_meta,
    is_pipeline_run,
)
from tests.core.catalogs import catalogs, make_pack, make_pipeline


def catalog_of(*packs: str, pipelines: tuple[str, ...] = ()) -> Catalog:
    return parse_catalog(
        {
            "packs": [make_pack(name) for name in packs],
            "pipelines": [make_pipeline(id) for id in pipelines],
        }
    )


CATALOG = catalog_of(
    "blog.publish",
    "github.create_issue",
    "helmdeck.memory_store",
    "helmdeck.plan",
    pipelines=("builtin.grounded-deck",),
)


@pytest.mark.parametrize(
    ("asked", "at"),
    [
        ("r\u00e9sum\u00e9.send", 0),  # as models write it; catalogs of a Mac's files do not
        ("R\u00c9SUM\u00c9.send", 0),
        ("re\u0301sume\u0301.send", 0),
        ("resume\u0301.send", None),
        ("CAFE\u0301.book", 1),
    ],
)
def test_an_accent_is_one_however_it_is_written(asked: str, at: int | None) -> None:
    ids = ["re\u0301sume\u0301.send", "caf\u00e9.book", "resume.send"]

    found = canonical(asked, catalog_of(*ids))

    assert (found and found.entry.id) == (None if at is None else ids[at])


@pytest.mark.parametrize(
    ("asked", "id"),
    [
        ("blog.publish", "blog.publish"),
        ("helmdeck__blog-publish", "blog.publish"),  # as MCP clients show it
        ("mcp__helmdeck__blog-publish", "blog.publish"),
        ("mcp_helmdeck_blog-publish", "blog.publish"),
        ("mcp__my_server__blog-publish", "blog.publish"),  # whatever the server is called
        ("functions.blog_publish", "blog.publish"),
        ("blog-publish", "blog.publish"),
        ("blog_publish", "blog.publish"),
        ("blog publish", "blog.publish"),
        ("Blog.Publish", "blog.publish"),
        ("`blog.publish`", "blog.publish"),
        (' "blog.publish" ', "blog.publish"),
        ("blog.publish()", "blog.publish"),
        ("helmdeck.blog.publish", "blog.publish"),
        ("helmdeck__github-create_issue", "github.create_issue"),
        ("helmdeck.memory_store", "helmdeck.memory_store"),
        ("helmdeck__memory_store", "helmdeck.memory_store"),
        ("helmdeck__helmdeck-memory_store", "helmdeck.memory_store"),
        ("builtin.grounded-deck", "builtin.grounded-deck"),
        ("BUILTIN_GROUNDED_DECK", "builtin.grounded-deck"),
    ],
)
def test_a_spelling_stands_for_its_entry(asked: str, id: str) -> None:
    found = canonical(asked, CATALOG)

    assert found is not None
    assert (found.entry.id, found.is_exact) == (id, asked.strip(' "`').removesuffix("()") == id)


@pytest.mark.parametrize(
    "asked",
    [
        "",
        " ",
        "publish",  # a part of a name
        "blog",
        "blog.publish.now",
        "blogpublish",
        "grounded-deck",
        "helmdeck.plan",  # never a tool, although the catalog has it
        "helmdeck__plan",
        "__",
        "helmdeck__",
        "*",
    ],
)
def test_anything_else_stands_for_nothing(asked: str) -> None:
    assert canonical(asked, CATALOG) is None


def test_marks_within_a_name_count() -> None:
    names = ToolNames(catalog_of("run.c++", "run.c"))

    assert [names.find(asked) is not None for asked in ("RUN_C", "RUN_C++", "run.c#")] == [
        True,
        True,
        False,
    ]
    assert names.find("helmdeck__run-c--") is not None  # as MCP clients show it


def test_an_exact_id_goes_before_its_other_spellings() -> None:
    names = ToolNames(catalog_of("a.b", "a_b", "A.B"))

    found = names.find("a_b")

    assert found is not None
    assert found.entry.id == "a_b"
    assert names.find("a-b") is None
    assert names.rivals("a-b") == ("a.b", "a_b", "A.B")
    assert names.rivals("nothing") == ()


@pytest.mark.parametrize(
    ("asked", "is_run"),
    [
        (PIPELINE_RUN, True),
        ("pipeline-run", True),
        ("pipeline_run", True),
        ("helmdeck.pipeline-run", True),
        ("helmdeck.pipeline_run", True),
        ("mcp__helmdeck__pipeline-run", True),
        ("`Pipeline-Run`", True),
        ("pipeline", False),
        ("pipeline-run-status", False),
        ("helmdeck__pipeline-list", False),
    ],
)
def test_a_pipeline_run_is_known_in_any_spelling(asked: str, is_run: bool) -> None:
    assert is_pipeline_run(asked) is is_run


@pytest.mark.parametrize(
    ("asked", "meta"),
    [
        ("helmdeck.plan", True),
        ("helmdeck__route", True),
        ("mcp__helmdash__plan", True),
        ("PLAN", True),
        ("helmdeck.planner", False),
        ("trip.plan", False),
        ("route.find", False),
    ],
)
def test_the_planner_knows_itself(asked: str, meta: bool) -> None:
    assert is_meta(asked) is meta


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        ("blog.publish", "helmdeck__blog-publish"),
        ("helmdeck.memory_store", "helmdeck__helmdeck-memory_store"),
        ("a/b c.ä", "helmdeck__a-b-c--"),  # MCP clients know letters, digits, "_" and "-"
        (PIPELINE_RUN, PIPELINE_RUN),
    ],
)
def test_clients_show_a_tool_by_its_own_name(tool: str, shown: str) -> None:
    assert client_name(tool) == shown


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("blog.publishing", ("blog.publish",)),
        ("mcp__helmdeck__blog-publsh", ("blog.publish",)),
        ("github.create_issues", ("github.create_issue",)),
        ("youtube.transcript", ()),
        ("helmdeck.plans", ()),  # the planner is never suggested
    ],
)
def test_near_spellings_are_found(asked: str, near: tuple[str, ...]) -> None:
    assert ToolNames(CATALOG).near(asked) == near


def test_a_large_catalog_is_searched_in_time() -> None:
    names = ToolNames(catalog_of(*(f"family{n % 97}.verb_{n}" for n in range(5_000))))
    before = time.process_time()

    names.near("family.verb" * 1_000)
    names.near("_" * 100_000)
    names.find("a__" * 100_000)

    # Measured 0.1 s.
    assert time.process_time() - before < 2


@settings(max_examples=25, deadline=None)
@given(catalogs(max_entries=12), st.text(max_size=30))
def test_every_id_finds_itself_and_no_text_is_refused(given_catalog: object, text: str) -> None:
    catalog = parse_catalog(given_catalog)
    names = ToolNames(catalog)

    for entry in catalog.entries:
        found = names.find(entry.id)
        assert found is not None
        assert found.entry.id == entry.id
    assert names.find(text) is None or text.strip()
    assert set(names.near(text)) <= {entry.id for entry in catalog.entries}
