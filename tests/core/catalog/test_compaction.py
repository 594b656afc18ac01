"""The ladder of steps, one entry at every level of detail, and where a text may be cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.catalog.catalog import CatalogEntry, EntryKind, parse_catalog
from helmdash.core.catalog.compaction import STEPS, Layout, enrich, lay_out, render, saved_by_step
from helmdash.core.text.sentences import first_sentence, sentence_ends
from tests.core.catalogs import catalogs, compact, make_pack, make_pipeline

PACK = make_pack(
    description="Publish a post. It goes live.",
    metadata={
        "accepts": ["markdown"],
        "intent_keywords": ["publish", "go live"],
        "typical_use": "At the end.",
        "limitations": ["one site"],
        "tags": ["beta"],
    },
    version=3,
)
PIPELINE = make_pipeline(
    description="From brief to post. In one call.",
    metadata={
        "supersedes": ["blog.publish"],
        "intent_keywords": ["write a post"],
        "typical_use": "Launch day.",
        "limitations": ["one post"],
        "steps": [
            {"id": "a", "pack": "blog.write", "name": "Write", "input": {"x": 1}, "note": "n"},
            "odd",
            {"pack": "blog.publish"},
        ],
        "inputs": {"brief": {"type": "string"}, "tone": {"type": "string"}},
        "outputs": [{"name": "url", "type": "string"}, {"nameless": 1}],
    },
)


def entry(raw: dict[str, Any]) -> CatalogEntry:
    member = "pipelines" if "id" in raw else "packs"
    return parse_catalog({member: [raw]}).entries[0]


def at_level(raw: dict[str, Any], level: int) -> dict[str, Any]:
    layout = lay_out(entry(raw))
    return dict(render(layout, layout.levels[level].mask))


def test_the_steps_are_the_six_of_the_seed_and_then_what_nobody_described() -> None:
    assert [step.label for step in STEPS] == [
        "pack.intent_keywords[]",
        "pack.typical_use",
        "pack.limitations[]",
        "pipeline.steps[].body",
        "pipeline.inputs/outputs.schema",
        "description.firstSentence",
        "entry.extra",
    ]


@pytest.mark.parametrize(
    ("level", "gone"),
    [
        (1, {"intent_keywords"}),
        (2, {"intent_keywords", "typical_use"}),
        (3, {"intent_keywords", "typical_use", "limitations"}),
        (5, {"intent_keywords", "typical_use", "limitations"}),  # steps 4, 5 are for pipelines
    ],
)
def test_the_first_steps_take_routing_words_from_packs(level: int, gone: set[str]) -> None:
    shown = at_level(PACK, level)

    assert PACK["metadata"].keys() - shown["metadata"].keys() == gone
    assert shown["description"] == PACK["description"]


def test_the_first_steps_leave_pipelines_alone() -> None:
    assert at_level(PIPELINE, 3) == PIPELINE


def test_step_bodies_go_and_the_steps_stay() -> None:
    assert at_level(PIPELINE, 4)["metadata"]["steps"] == [
        {"id": "a", "pack": "blog.write", "name": "Write"},
        "odd",
        {"pack": "blog.publish"},
    ]


def test_schemas_become_their_field_names_in_the_order_given() -> None:
    metadata = at_level(PIPELINE, 5)["metadata"]

    assert metadata["inputs"] == ["brief", "tone"]
    assert metadata["outputs"] == ["url"]


def test_descriptions_end_at_their_first_sentence() -> None:
    assert at_level(PACK, 6)["description"] == "Publish a post."
    assert at_level(PIPELINE, 6)["description"] == "From brief to post."


def test_members_nobody_described_go_last_and_whole() -> None:
    assert at_level(PACK, 6)["version"] == 3
    assert at_level(PACK, 7) == {
        "name": "blog.publish",
        "description": "Publish a post.",
        "metadata": {"accepts": ["markdown"]},
    }


def test_a_bare_entry_is_what_is_never_dropped() -> None:
    layout = lay_out(entry(PIPELINE))

    assert render(layout, layout.bare.mask) == {
        "id": "builtin.blog",
        "name": "Write a blog",
        "metadata": {"supersedes": ["blog.publish"]},
    }
    assert dict(render(layout, layout.one_line.mask))["description"] == "From brief to post."


@pytest.mark.parametrize(
    "odd",
    [
        {"metadata": None},  # wrong types are whole units of extra detail
        {"metadata": "text"},
        {"metadata": {}},
        {"metadata": {"intent_keywords": "publish", "accepts": 4, "typical_use": ["x"]}},
        {"description": None},
        {"description": ["Publish."]},
        {"": 1, "äöü": "ß"},  # odd keys
    ],
)
def test_odd_detail_is_carried_until_the_last_step(odd: dict[str, Any]) -> None:
    raw = {"name": "a.b", **odd}

    assert at_level(raw, 6) == raw
    assert at_level(raw, 7) == {"name": "a.b"}


def test_an_entry_with_very_many_elements_is_cut_into_few_units() -> None:
    keywords = [f"keyword {number}" for number in range(10_000)]
    extras: dict[str, Any] = {f"x{number}": number for number in range(1_000)}
    text = "A sentence. " * 1_000

    layout = lay_out(entry(make_pack(description=text, metadata={"accepts": keywords}, **extras)))

    assert len(layout.detail.units) < 250
    mask, used = enrich(layout, layout.bare.mask, 20_000)
    assert 19_000 < used <= 20_000
    assert len(compact(render(layout, mask))) == layout.bare.size + used


def layouts(catalog: dict[str, Any]) -> list[Layout]:
    return [lay_out(entry) for entry in parse_catalog(catalog).entries]


@settings(max_examples=60, deadline=None)
@given(catalog=catalogs(max_entries=8))
def test_the_sizes_of_all_views_are_true(catalog: dict[str, Any]) -> None:
    for layout in layouts(catalog):
        for view in (*layout.levels, layout.one_line, layout.bare):
            assert view.size == len(compact(render(layout, view.mask)))
            assert sum(size for _, size in view.saved) == layout.full.size - view.size


@settings(max_examples=60, deadline=None)
@given(catalog=catalogs(max_entries=8), data=st.data())
def test_the_sizes_of_enriched_entries_are_true(
    catalog: dict[str, Any], data: st.DataObject
) -> None:
    for layout in layouts(catalog):
        room = data.draw(st.integers(0, 400))

        mask, used = enrich(layout, layout.bare.mask, room)

        assert used <= room
        assert len(compact(render(layout, mask))) == layout.bare.size + used
        saved = sum(size for _, size in saved_by_step(layout.detail, mask))
        assert saved == layout.full.size - layout.bare.size - used
        assert enrich(layout, mask, room - used) == (mask, 0)


@settings(max_examples=40, deadline=None)
@given(catalog=catalogs(max_entries=8))
def test_each_step_only_takes_away(catalog: dict[str, Any]) -> None:
    for layout in layouts(catalog):
        sizes = [view.size for view in layout.levels]

        assert sizes == sorted(sizes, reverse=True)
        assert layout.bare.size <= layout.one_line.size <= layout.full.size
        assert render(layout, layout.full.mask) is layout.entry.raw


def test_kinds_decide_what_a_step_takes() -> None:
    as_pack = CatalogEntry(kind=EntryKind.PACK, id="x", name="x", raw=PIPELINE)

    layout = lay_out(as_pack)
    shown = [json.loads(compact(render(layout, view.mask))) for view in layout.levels]

    # Steps and schemas are a pipeline's; on a pack they are members nobody described.
    assert shown[6]["metadata"]["steps"] == PIPELINE["metadata"]["steps"]
    assert "steps" not in shown[7]["metadata"]


# --- sentences ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", ""),
        ("no terminator", "no terminator"),  # not cut
        ("v0.13.0 is a version. Not here.", "v0.13.0 is a version."),  # a point inside a word
        ("Question? Then.", "Question?"),
        ("Wow! Yes.", "Wow!"),
        ("One.\nTwo.", "One."),
        ("One. ", "One. "),  # nothing but space follows: all of it is the sentence
        ("Takes files, e.g. PDFs. Then more.", "Takes files, e.g. PDFs."),  # the known weakness
        ("Reads text (i.e. no scans). Fast.", "Reads text (i.e. no scans)."),
        ("1. Read it. 2. Write it.", "1. Read it."),  # a number in a list
        ("画像を作る。速い。", "画像を作る。"),  # no space after it
        ("चित्र बनाता है। तेज़।", "चित्र बनाता है।"),
    ],
)
def test_the_first_sentence(text: str, first: str) -> None:
    assert first_sentence(text) == first


@given(st.text(alphabet="ab.?! \n。", max_size=40))
def test_sentences_are_whole_and_complete(text: str) -> None:
    ends = sentence_ends(text)

    assert list(ends) == sorted(set(ends))
    assert (ends[-1] if ends else 0) == len(text)
    assert first_sentence(first_sentence(text)) == first_sentence(text)
