"""Fitting a catalog: the laws of decisions.md "Fit", and the cases of the spec."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helmdash.core.budgets import Tier
from helmdash.core.catalog import parse_catalog
from helmdash.core.detail import field_names, slim_step
from helmdash.core.selection import PreparedCatalog, Selection, prepare, select
from helmdash.core.sentences import sentence_ends
from tests.core.catalogs import (
    catalogs,
    compact,
    make_budget,
    texts,
)

SIX = (
    "pack.intent_keywords[]",
    "pack.typical_use",
    "pack.limitations[]",
    "pipeline.steps[].body",
    "pipeline.inputs/outputs.schema",
    "description.firstSentence",
)


def prepared(catalog: object) -> PreparedCatalog:
    return prepare(parse_catalog(catalog))


def fit(catalog: object, room: int, intent: str = "", **more: Any) -> Selection:
    tier = more.pop("tier", Tier.C)
    budget = make_budget(tier, max_catalog_bytes=room, input_tokens=1_000_000)
    return select(prepared(catalog), intent=intent, budget=budget, **more)


def entries_of(catalog: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All entries by the string a plan calls them by."""
    packs = {pack["name"]: pack for pack in catalog.get("packs") or ()}
    return packs | {chain["id"]: chain for chain in catalog.get("pipelines") or ()}


def one_unit_more(given: dict[str, Any], shown: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The fitted catalog with one more unit of detail, in every way there is one."""
    for member in given.keys() - shown.keys():
        yield {**shown, member: given[member]}
    for member, key in (("packs", "name"), ("pipelines", "id")):
        shown_by_id = {entry[key]: entry for entry in shown.get(member) or ()}
        for entry in given.get(member) or ():
            if entry[key] not in shown_by_id:
                yield {**shown, member: [*shown[member], bare(entry)]}
                continue
            for richer in richer_entries(entry, shown_by_id[entry[key]], member == "pipelines"):
                others = [other for other in shown[member] if other[key] != entry[key]]
                yield {**shown, member: [*others, richer]}


def bare(entry: dict[str, Any]) -> dict[str, Any]:
    shown = {key: entry[key] for key in ("id", "name", "supersedes") if key in entry}
    metadata = entry.get("metadata")
    if isinstance(metadata, dict) and "supersedes" in metadata:
        shown["metadata"] = {"supersedes": metadata["supersedes"]}
    return shown


def richer_entries(
    given: dict[str, Any], shown: dict[str, Any], is_pipeline: bool
) -> Iterator[dict[str, Any]]:
    for key in given:
        metadata = given[key]
        if key == "metadata" and isinstance(metadata, dict) and metadata:
            had = shown.get("metadata", {})
            for member in metadata:
                for value in richer_values(member, metadata, had, is_pipeline):
                    yield {**shown, "metadata": {**had, member: value}}
        else:
            for value in richer_values(key, given, shown, is_pipeline):
                yield {**shown, key: value}


def richer_values(
    key: str, given: dict[str, Any], shown: dict[str, Any], is_pipeline: bool
) -> Iterator[object]:
    full, had = given[key], shown.get(key)
    if key in shown and had == full:
        return
    if isinstance(full, str) and key in ("description", "typical_use"):
        length = len(had) if isinstance(had, str) else -1
        yield full[: next(end for end in sentence_ends(full) or (0,) if end > length)]
    elif isinstance(full, list) and key in (
        "accepts",
        "produces",
        "intent_keywords",
        "limitations",
    ):
        rest = [compact(item) for item in full]
        for item in had or ():
            rest.remove(compact(item))
        yield from ([*(had or ()), json.loads(item)] for item in rest)
        yield from ([[]] if not full else [])
    elif is_pipeline and key == "steps" and isinstance(full, list):
        if had is None:
            yield [slim_step(step) for step in full]
        else:
            for at, step in enumerate(full):
                if had[at] != step:
                    yield [*had[:at], step, *had[at + 1 :]]
    elif is_pipeline and key in ("inputs", "outputs") and isinstance(full, dict | list):
        yield full if key in shown else field_names(full)
    else:
        yield full


def kept_for_ever(entry: dict[str, Any]) -> object:
    metadata = entry.get("metadata")
    nested = metadata.get("supersedes", "absent") if isinstance(metadata, dict) else "absent"
    return entry["name"], entry.get("id"), entry.get("supersedes", "absent"), nested


# --- laws --------------------------------------------------------------------------------------

laws = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@laws
@given(
    catalog=catalogs(),
    room=st.integers(1, 60_000) | st.integers(1, 3_000),
    intent=texts,
    tier=st.sampled_from(Tier),
)
def test_a_fitted_catalog_keeps_every_law(
    catalog: dict[str, Any], room: int, intent: str, tier: Tier
) -> None:
    untouched = copy.deepcopy(catalog)

    fitted = fit(catalog, room, intent, tier=tier)

    trim, given_entries, shown = fitted.trim, entries_of(catalog), entries_of(fitted.catalog)
    assert compact(catalog) == compact(untouched)
    assert trim.before_bytes == len(compact(catalog))
    assert trim.after_bytes == len(compact(fitted.catalog))
    assert trim.fits == (trim.after_bytes <= room)
    assert sum(step.bytes_saved for step in trim.steps) == trim.before_bytes - trim.after_bytes
    assert all(step.entries > 0 and step.bytes_saved > 0 for step in trim.steps)
    assert {entry.id for entry in trim.kept} == set(shown)
    assert {entry.id for entry in trim.kept + trim.removed} == set(given_entries)
    ranks = sorted(entry.rank for entry in trim.kept + trim.removed)
    assert ranks == list(range(1, len(given_entries) + 1))
    for id, entry in shown.items():
        assert kept_for_ever(entry) == kept_for_ever(given_entries[id])
    if not trim.fits:
        assert len(shown) == 1
        assert trim.kept[0].rank == 1
        assert trim.dropped[-1] == f"still_over_budget({trim.after_bytes}>{room})"
    if trim.before_bytes <= room:
        assert compact(fitted.catalog) == compact(catalog)
        assert not trim.steps


@laws
@given(catalog=catalogs(), room=st.integers(1, 20_000) | st.integers(1, 3_000), intent=texts)
def test_nothing_left_out_is_small_enough_for_the_room_that_is_left(
    catalog: dict[str, Any], room: int, intent: str
) -> None:
    fitted = fit(catalog, room, intent)

    if fitted.trim.fits:
        for richer in one_unit_more(catalog, fitted.catalog):
            assert len(compact(richer)) > room, richer
