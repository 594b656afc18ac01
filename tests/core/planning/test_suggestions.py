"""Entries that a text may have meant: those that tell what it asks for, or none."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.planning.suggestions import suggest_entries
from helmdash.core.ranking.ranking import prepare_index
from tests.core.catalogs import catalogs, make_pack

INDEX = prepare_index(
    parse_catalog(
        {
            "packs": [
                make_pack("blog.publish", description="Publish a post on the blog."),
                make_pack(
                    "motion.interpolate",
                    description="Fill the gaps of an animation.",
                    metadata={"accepts": ["transcript"]},
                ),
                make_pack("github.search", description="Search code; takes a query."),
                make_pack("mail.send", description="Send a mail to a team."),
                make_pack("helmdeck.plan", description="Publish a plan."),
            ]
        }
    )
)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("publish it", ("blog.publish",)),
        ("publishing a post", ("blog.publish",)),
        ("send mail", ("mail.send",)),
        # Several things at once: no entry tells half of it.
        (
            "Write up the launch, publish a blog post, draw a picture, then send a mail",
            ("blog.publish", "mail.send"),
        ),
        ("youtube.transcript", ()),  # only a kind of data is shared
        ("database.query", ()),  # half of it is unknown here
        ("klingon", ()),
        ("the of and", ()),
        ("", ()),
    ],
)
def test_entries_are_likely_that_tell_what_is_asked_for(text: str, ids: tuple[str, ...]) -> None:
    assert set(suggest_entries(INDEX, text, 3)) == set(ids)


def test_so_many_are_told_at_most() -> None:
    assert len(suggest_entries(INDEX, "publish a blog post, send a mail to a team", 1)) == 1


def test_a_large_catalog_is_read_in_time() -> None:
    packs = [make_pack(f"family{n}.verb", description=f"Send thing {n}.") for n in range(3_000)]
    index = prepare_index(parse_catalog({"packs": packs}))
    before = time.process_time()

    suggest_entries(index, "send a thing", 3)

    # Measured 0.03 s.
    assert time.process_time() - before < 1


@settings(max_examples=25, deadline=None)
@given(catalogs(max_entries=12), st.text(max_size=30))
def test_any_text_gives_entries_of_the_catalog(given_catalog: object, text: str) -> None:
    catalog = parse_catalog(given_catalog)

    found = suggest_entries(prepare_index(catalog), text, 3)

    assert set(found) <= {entry.id for entry in catalog.entries}
    assert len(set(found)) == len(found) <= 3
