"""Catalogs and budgets for the tests of fitting: plain factories, and random ones for laws."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

# Words of several scripts, so that bytes and characters differ.
WORDS = (
    "blog draft image publish repository narrated deck render summary fetch issue memory video "
    "podcast scrape citations Überblick Präsentation 検索 画像 作成 отчёт ค้นหา رسم 🙂 naïve"
).split()


def make_pack(name: str = "blog.publish", **members: object) -> dict[str, Any]:
    return {"name": name, "description": "Publish a post. It goes live.", **members}


def make_pipeline(id: str = "builtin.blog", **members: object) -> dict[str, Any]:
    return {"id": id, "name": "Write a blog", "description": "From brief to post.", **members}


def make_catalog(packs: int = 52, pipelines: int = 21) -> dict[str, Any]:
    """A catalog of the size of helmdeck ADR 050's: every kind of detail on every entry."""
    return {
        "packs": [_rich_pack(number) for number in range(packs)],
        "pipelines": [_rich_pipeline(number) for number in range(pipelines)],
    }


def compact(value: object) -> bytes:
    """Compact UTF-8 JSON made without our own code: the yardstick of the byte counts."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _rich_pack(number: int) -> dict[str, Any]:
    return make_pack(
        f"family{number % 7}.verb{number}",
        description=f"Does thing {number} well. It needs a key. It never writes to disk.",
        metadata={
            "accepts": ["markdown", f"kind{number}"],
            "produces": ["pdf", "slide_deck"],
            "intent_keywords": [f"make thing {number}", "render deck", "turn notes into slides"],
            "typical_use": f"Use it for thing {number}. Then publish the result.",
            "limitations": ["at most 40 pages", "no tables"],
        },
    )


def _rich_pipeline(number: int) -> dict[str, Any]:
    steps = [
        {"id": f"s{at}", "pack": f"family{at}.verb{at}", "name": f"Step {at}", "input": {"n": at}}
        for at in range(4)
    ]
    return make_pipeline(
        f"builtin.chain{number}",
        name=f"Chain {number}",
        description=f"Runs chain {number} from start to end. One call does it all.",
        metadata={
            "accepts": ["brief"],
            "produces": [f"result{number}"],
            "intent_keywords": [f"run chain {number}"],
            "supersedes": [f"family{number % 7}.verb{number}"],
            "steps": steps,
            "inputs": {"topic": {"type": "string", "required": True}, "tone": {"type": "string"}},
            "outputs": [{"name": "url", "type": "string"}],
        },
    )


# --- random catalogs ---------------------------------------------------------------------------

texts = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
sentences = st.lists(
    st.tuples(texts, st.sampled_from([". ", "! ", "? ", "。", ".\n", ""])), max_size=4
).map(lambda parts: "".join(text + end for text, end in parts))
odd = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
words_list = st.lists(texts | odd, max_size=5)
names = (
    st.text(min_size=1, max_size=12)
    .filter(lambda name: bool(name.strip()))
    .filter(lambda name: not any("\ud800" <= letter <= "\udfff" for letter in name))
)
steps = st.lists(
    st.fixed_dictionaries(
        {}, optional={"id": texts, "pack": texts, "name": texts, "input": odd, "note": texts}
    )
    | odd,
    max_size=5,
)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "accepts": words_list,
        "produces": words_list | odd,
        "intent_keywords": words_list | odd,
        "typical_use": sentences | odd,
        "limitations": words_list,
        "supersedes": st.lists(texts, max_size=3) | odd,
        "steps": steps | odd,
        "inputs": st.dictionaries(texts, odd, max_size=3) | steps | odd,
        "outputs": odd,
        "tags": odd,
        "": odd,
    },
)


@st.composite
def catalogs(draw: st.DrawFn, max_entries: int = 60) -> dict[str, Any]:
    """Any catalog that can be named without doubt: odd types, odd scripts, odd key orders."""
    ids = draw(st.lists(names, min_size=1, max_size=max_entries, unique=True))
    split = draw(st.integers(0, len(ids)))
    packs = [_shuffled(draw, {"name": name, **draw(details)}) for name in ids[:split]]
    pipelines = [
        _shuffled(draw, {"id": id, "name": draw(names), **draw(details)}) for id in ids[split:]
    ]
    catalog = {"packs": packs, "pipelines": pipelines, **draw(extras)}
    for member in ("packs", "pipelines"):
        if not catalog[member] and draw(st.booleans()):
            del catalog[member]
    return _shuffled(draw, catalog)


details = st.fixed_dictionaries(
    {},
    optional={
        "description": sentences | odd,
        "metadata": metadata | odd,
        "version": odd,
        "supersedes": st.lists(texts, max_size=2) | odd,
    },
)
extras = st.fixed_dictionaries({}, optional={"policy": sentences, "fetched_at": odd})


def _shuffled(draw: st.DrawFn, value: dict[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in draw(st.permutations(list(value)))}
