"""Fitting a catalog: laws for any catalog, and cases of real ones."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helmdash.answers import to_json
from helmdash.core.budgets.budgets import Tier
from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.catalog.detail import field_names, slim_step
from helmdash.core.fitting.replay import replay
from helmdash.core.fitting.selection import (
    PreparedCatalog,
    Selection,
    prepare,
    room_for_catalog,
    select,
    stable_fits,
)
from helmdash.core.text.sentences import sentence_ends
from tests.builders import make_budget
from tests.core.catalogs import catalogs, compact, make_catalog, make_pack, make_pipeline, texts

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
    budget = make_budget(tier=tier, max_catalog_bytes=room, input_tokens=1_000_000)
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
    kept: tuple[str, ...] = ("id", "name", "supersedes")
    shown = {key: entry[key] for key in kept if key in entry}
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

laws = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


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


SEATS = {Tier.A: 25, Tier.B: 25, Tier.C: 12}  # the top-N of helmdeck ADR 050, by tier


@laws
@given(catalog=catalogs(), over=st.integers(0, 400), intent=texts, tier=st.sampled_from(Tier))
def test_all_of_the_best_are_shown_wherever_their_bare_forms_fit(
    catalog: dict[str, Any], over: int, intent: str, tier: Tier
) -> None:
    ranked = fit(catalog, 1_000_000, intent).trim.kept
    best = {entry.id for entry in ranked if entry.rank <= SEATS[tier]}
    only_best = {
        member: [bare(entry) for entry in catalog[member] if entry[key] in best]
        for member, key in (("packs", "name"), ("pipelines", "id"))
        if member in catalog
    }

    fitted = fit(catalog, len(compact(only_best)) + over, intent, tier=tier)

    assert best <= set(entries_of(fitted.catalog))


@laws
@given(catalog=catalogs(), room=st.integers(1, 20_000) | st.integers(1, 3_000), intent=texts)
def test_nothing_left_out_is_small_enough_for_the_room_that_is_left(
    catalog: dict[str, Any], room: int, intent: str
) -> None:
    fitted = fit(catalog, room, intent)

    if fitted.trim.fits:
        for richer in one_unit_more(catalog, fitted.catalog):
            assert len(compact(richer)) > room, richer


@laws
@given(catalog=catalogs(), room=st.integers(200, 6_000), intent=texts)
def test_fitting_is_repeatable_and_fits_only_once(
    catalog: dict[str, Any], room: int, intent: str
) -> None:
    first = fit(catalog, room, intent)

    again = fit(catalog, room, intent)
    of_result = fit(first.catalog, room, intent)

    assert compact(again.catalog) == compact(first.catalog)
    assert again.trim == first.trim
    if first.trim.fits:
        assert compact(of_result.catalog) == compact(first.catalog)


@settings(laws, max_examples=30)
@given(
    catalog=catalogs(),
    room=st.integers(1, 20_000) | st.integers(1, 3_000),
    intent=texts,
    tier=st.sampled_from(Tier),
    data=st.data(),
)
def test_the_picks_of_a_filter_go_first_within_the_same_room(
    catalog: dict[str, Any], room: int, intent: str, tier: Tier, data: st.DataObject
) -> None:
    ids = sorted(entries_of(catalog))
    picks = data.draw(st.lists(st.sampled_from([*ids, "no.such"]), unique=True, max_size=12))
    bare_picks = {
        member: [bare(entry) for entry in catalog[member] if entry[key] in picks]
        for member, key in (("packs", "name"), ("pipelines", "id"))
        if member in catalog
    }
    plain = fit(catalog, room, intent, tier=tier)

    fitted = fit(catalog, room, intent, tier=tier, preferred=picks)

    trim, shown = fitted.trim, entries_of(fitted.catalog)
    assert trim.after_bytes == len(compact(fitted.catalog))
    assert trim.fits == (trim.after_bytes <= room)
    assert sum(step.bytes_saved for step in trim.steps) == trim.before_bytes - trim.after_bytes
    assert {entry.id for entry in trim.kept} == set(shown)
    # Ranks and scores are the intent's, whatever was picked.
    assert set(trim.kept + trim.removed) == set(plain.trim.kept + plain.trim.removed)
    assert fitted.order == plain.order
    if not picks:
        assert trim == plain.trim
        return
    if len(compact(bare_picks)) <= room:
        assert set(picks) & set(ids) <= set(shown)
    kept = len(set(picks) & set(shown))
    assert f"llm_filter(picks={len(picks)},kept={kept})" in trim.dropped
    assert trim.versions["filter"]
    if trim.removed:
        rank_of = {entry.id: entry.rank for entry in trim.kept}
        sent: dict[str, Any] = fitted.catalog
        for key in ("packs", "pipelines"):
            listed = [entry.get("id", entry["name"]) for entry in sent.get(key) or ()]
            assert listed == sorted(listed, key=lambda id: (id not in picks, rank_of[id]))


@settings(laws, max_examples=30)
@given(
    catalog=catalogs(),
    cap=st.just(0) | st.integers(1, 20_000),
    ceiling=st.integers(10, 10_000),
    asked=st.lists(st.tuples(texts, st.integers(0, 4_000)), min_size=2, max_size=4),
)
def test_a_stable_layout_is_the_same_for_every_intent(
    catalog: dict[str, Any], cap: int, ceiling: int, asked: list[tuple[str, int]]
) -> None:
    ready = prepared(catalog)
    budget = make_budget(tier=Tier.B, max_catalog_bytes=cap, input_tokens=ceiling)
    stable: set[bytes] = set()

    for intent, fixed in asked:
        fitted = select(ready, intent=intent, budget=budget, fixed_bytes=fixed, stable=True)
        assert fitted.is_stable == stable_fits(ready, budget=budget, fixed_bytes=fixed)
        assert fitted.trim.after_bytes == len(compact(fitted.catalog))
        saved = sum(step.bytes_saved for step in fitted.trim.steps)
        assert saved == fitted.trim.before_bytes - fitted.trim.after_bytes
        if fitted.is_stable:
            assert fitted.trim.fits
            assert not fitted.trim.removed
            assert fitted.doubt is None
            stable.add(compact(fitted.catalog))
        else:
            plain = select(ready, intent=intent, budget=budget, fixed_bytes=fixed)
            assert compact(fitted.catalog) == compact(plain.catalog)
            assert not plain.is_stable

    assert len(stable) <= 1


# --- the ladder --------------------------------------------------------------------------------


def sizes_after_each_step(catalog: dict[str, Any]) -> list[int]:
    return list(prepared(catalog).totals)


def test_a_catalog_that_fits_passes_through_and_is_ranked_all_the_same() -> None:
    catalog = make_catalog(packs=3, pipelines=1)

    fitted = fit(catalog, len(compact(catalog)), "chain 0")

    assert compact(fitted.catalog) == compact(catalog)
    assert fitted.trim.dropped == ()
    assert [entry.rank for entry in fitted.trim.kept] == [1, 2, 3, 4]
    assert fitted.trim.kept[0].id == "builtin.chain0"
    assert fitted.trim.removed == ()


@pytest.mark.parametrize("step", range(1, 7))
def test_each_step_is_applied_only_when_those_before_do_not_suffice(step: int) -> None:
    catalog = make_catalog()
    room = sizes_after_each_step(catalog)[step]

    fitted = fit(catalog, room, "chain 3")

    assert fitted.trim.fits
    assert set(fitted.trim.dropped) <= set(SIX[:step])
    assert SIX[step - 1] in fitted.trim.dropped
    assert len(fitted.trim.kept) == 73


def test_the_last_step_spares_the_most_relevant_entries() -> None:
    catalog = make_catalog()
    sizes = sizes_after_each_step(catalog)

    fitted = fit(catalog, (sizes[0] + sizes[1]) // 2, "make thing 17")

    assert [step.label for step in fitted.trim.steps] == ["pack.intent_keywords[]"]
    best = entries_of(fitted.catalog)["family3.verb17"]
    assert best == entries_of(catalog)["family3.verb17"]
    assert fitted.trim.steps[0].entries < 52
    assert list(entries_of(fitted.catalog)) == list(entries_of(catalog))  # the order given


def test_unknown_members_of_the_catalog_go_before_any_entry_does() -> None:
    catalog = {**make_catalog(packs=4, pipelines=0), "policy": "x" * 5_000}
    room = sizes_after_each_step(catalog)[-1] - 4_000

    fitted = fit(catalog, room)

    assert "policy" not in fitted.catalog
    assert "catalog.extra" in fitted.trim.dropped
    assert len(fitted.trim.kept) == 4


def test_dropping_unknown_members_leaves_nothing_behind() -> None:
    fitted = fit({"policy": "x" * 50}, 10)

    assert fitted.catalog == {}
    assert fitted.trim.after_bytes == 2
    assert fitted.trim.fits


# --- entries have to go ------------------------------------------------------------------------


def test_the_best_are_shown_richly_and_the_others_in_one_line_or_by_name() -> None:
    catalog = make_catalog()

    fitted = fit(catalog, 6_000, "make thing 17")

    shown = entries_of(fitted.catalog)
    assert fitted.trim.after_bytes > 5_950
    assert "lexical.top_n" in fitted.trim.dropped
    assert "entry.one_line" in fitted.trim.dropped
    kept = [entry.id for entry in fitted.trim.kept]
    assert "accepts" in shown[kept[0]]["metadata"]
    assert len(kept) > 40
    assert set(shown[kept[-1]]) <= {"id", "name", "metadata", "description"}
    assert fitted.trim.removed


def test_packs_and_pipelines_come_in_rank_order_once_entries_are_missing() -> None:
    fitted = fit(make_catalog(), 3_000, "chain 5 thing 9")

    rank_of = {entry.id: entry.rank for entry in fitted.trim.kept}
    for member, key in (("packs", "name"), ("pipelines", "id")):
        entries = json.loads(compact(fitted.catalog))[member]
        ranks = [rank_of[entry[key]] for entry in entries]
        assert ranks == sorted(ranks)


@pytest.mark.parametrize(
    "intent",
    ["please run blog.publish", "publish with helmdeck__blog-publish", "Blog Publish it"],
)
def test_a_pipeline_survives_that_supersedes_a_named_pack(intent: str) -> None:
    noise = [make_pack(f"blog.publish{n}", description=intent * 3) for n in range(50)]
    chain = make_pipeline(
        "builtin.zzz",
        name="Zzz",
        description="",
        metadata={"supersedes": ["blog.publish"], "notes": "n" * 900},
    )
    catalog = {"packs": [*noise, make_pack("blog.publish")], "pipelines": [chain]}

    for room in (400, 1_000, 4_000):
        shown = entries_of(fit(catalog, room, intent).catalog)
        assert shown["builtin.zzz"]["metadata"]["supersedes"] == ["blog.publish"]


def test_it_survives_even_where_that_pack_is_not_in_the_catalog() -> None:
    noise = [make_pack(f"blog.publish_{n}", description="Blog publish.") for n in range(300)]
    chain = make_pipeline(
        "z",
        name="Z",
        description="",
        metadata={
            "supersedes": ["blog.publish", "mail.send", "doc.parse", "web.scrape", "image.generate"]
        },
    )

    fitted = fit({"packs": noise, "pipelines": [chain]}, 500, "blog publish 17")

    place = next(entry for entry in fitted.trim.kept if entry.id == "z")
    assert place.rank > len(fitted.trim.kept)  # not by its rank


def test_an_uncut_long_description_does_not_take_the_room_of_ten_others() -> None:
    endless = [make_pack(f"a.endless{n}", description="word " * 400) for n in range(20)]
    short = [make_pack(f"z.short{n}", description="Short.") for n in range(40)]

    kept = fit({"packs": endless + short}, 10_000).trim.kept

    assert len(kept) == 60


@pytest.mark.parametrize(("packs", "shown"), [(40, 40), (400, 100)])
@pytest.mark.parametrize(
    "endless",
    [
        range(4),  # the best four, which could fill the room between them
        range(0, 40, 3),
        range(12),  # all of the best
        range(40),
    ],
)
def test_endless_descriptions_of_the_best_leave_room_for_the_names_of_others(
    endless: range, packs: int, shown: int
) -> None:
    listed = [make_pack(f"tool.n{at:03}", description="Does one thing.") for at in range(packs)]
    for at in endless:
        listed[at]["description"] = "word " * 480  # 2,400 bytes without a full stop

    trim = fit({"packs": listed}, 10_000).trim  # no intent: ranked by name

    assert [entry.id for entry in trim.kept[:12]] == [f"tool.n{at:03}" for at in range(12)]
    assert len(trim.kept) >= shown
    assert 10_000 - 2_450 < trim.after_bytes <= 10_000  # no room for one more endless one


@pytest.mark.parametrize("room", [-5, 0, 1, 30])
def test_where_not_even_one_entry_fits_the_best_stays_and_the_trim_says_so(room: int) -> None:
    budget = make_budget(max_catalog_bytes=0, input_tokens=100)
    fixed = budget.estimator.bytes_within(100) - room

    fitted = select(prepared(make_catalog()), intent="chain 7", budget=budget, fixed_bytes=fixed)

    (entry,) = fitted.trim.kept
    assert entry.id == "builtin.chain7"
    assert not fitted.trim.fits
    assert fitted.trim.limit_bytes == max(room, 0)
    assert fitted.trim.after_bytes == len(compact(fitted.catalog))
    last = f"still_over_budget({fitted.trim.after_bytes}>{max(room, 0)})"
    assert fitted.trim.dropped[-1] == last


def test_a_smaller_entry_stays_where_the_best_does_not_fit() -> None:
    catalog = {"packs": [make_pack("best." + "x" * 200), make_pack("b.b")]}

    fitted = fit(catalog, 60, "best")

    assert [entry.id for entry in fitted.trim.kept] == ["b.b"]
    assert fitted.trim.fits


@pytest.mark.parametrize("catalog", [{}, {"packs": []}, {"packs": None}, {"pipelines": []}])
def test_an_empty_catalog_stays_as_it_is(catalog: dict[str, Any]) -> None:
    fitted = fit(catalog, 1_000)

    assert fitted.catalog == catalog
    assert fitted.trim.kept == ()
    assert fit(catalog, 1).trim.fits is False


# --- room and receipt --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cap", "input_tokens", "fixed", "room"),
    [
        (10_000, 16_000, 0, 10_000),  # the cap rules
        (10_000, 16_000, 50_000, 3_333),  # what else is sent rules: 53,333 bytes in 16,000 tokens
        (0, 16_000, 0, 53_333),  # no cap
        (-1, 16_000, 0, 53_333),
        (10_000, 16_000, 60_000, -6_667),  # the rest alone is too much
    ],
)
def test_the_room_is_what_cap_and_input_ceiling_leave(
    cap: int, input_tokens: int, fixed: int, room: int
) -> None:
    budget = make_budget(max_catalog_bytes=cap, input_tokens=input_tokens)

    found = room_for_catalog(budget, fixed)

    assert abs(found - room) <= 3  # tokens are whole: their last one may hold some bytes more
    assert budget.estimator.tokens_of_bytes(max(found, 0) + fixed) <= input_tokens or found <= 0


@pytest.mark.parametrize(
    ("limit", "most"),
    [(8_192, 8_192), (200_000, 200_000), (1_000_000, 200_000), (None, 200_000)],
)
def test_the_room_is_within_the_window_as_well(limit: int | None, most: int) -> None:
    """A refusal or a server tells a window that may be far below what the row thinks safe."""
    budget = replace(make_budget(max_catalog_bytes=0, input_tokens=200_000), limit_tokens=limit)

    assert budget.most_prompt_tokens == most
    assert room_for_catalog(budget) == budget.estimator.bytes_within(most)


def test_timings_are_told_only_by_a_clock() -> None:
    ticks = iter([10.0, 10.5, 12.5])
    catalog, budget = prepared(make_catalog(3, 1)), make_budget()

    timed = select(catalog, intent="", budget=budget, clock=lambda: next(ticks))

    assert timed.trim.timings_ms == {"rank": 500.0, "fit": 2000.0}
    assert select(catalog, intent="", budget=budget).trim.timings_ms == {}


def test_the_receipt_as_json_has_the_shape_of_the_api() -> None:
    trim = fit(make_catalog(), 6_000, "make thing 17").trim

    found = to_json(trim)

    assert found["before_bytes"] == trim.before_bytes
    assert found["dropped"] == list(trim.dropped)
    assert found["kept"][0] == {
        "id": trim.kept[0].id,
        "kind": "pack",
        "rank": 1,
        "score": trim.kept[0].score,
        "history": 0.0,
    }
    assert set(found["versions"]) == {"ranking", "compaction", "selection"}
    assert json.loads(json.dumps(found)) == found
    assert 0 < trim.after_bytes < trim.before_bytes


# --- size and speed ----------------------------------------------------------------------------


@pytest.mark.parametrize("tier", list(Tier))
def test_two_thousand_entries_fit_and_use_their_room(tier: Tier) -> None:
    catalog = make_catalog(packs=1_500, pipelines=500)
    ready = prepared(catalog)
    budget = make_budget(tier=tier, max_catalog_bytes=10_000)

    started = time.process_time()
    fitted = select(ready, intent="make thing 1234, then run chain 99", budget=budget)
    took = time.process_time() - started

    assert 9_900 <= len(compact(fitted.catalog)) == fitted.trim.after_bytes <= 10_000
    assert len(fitted.trim.kept) + len(fitted.trim.removed) == 2_000
    assert {"family2.verb1234", "builtin.chain99"} <= {e.id for e in fitted.trim.kept[:12]}
    assert took < 1.0  # typically 20 ms; a guard against anything quadratic


# --- the demo catalog --------------------------------------------------------------------------

DEMO = json.loads(
    (Path(__file__).parents[3] / "fixtures" / "demo_catalog.json").read_text(encoding="utf-8")
)
LAUNCH = (
    "Our new open model brings a context of one million tokens and agentic coding to everyone. "
    "It scores 59 % on SWE-bench Pro and was trained on text, images and video from day one. "
    "Weights and a technical report follow on GitHub within ten days. Developers can call it "
    "through the API today; the price is a fifth of comparable frontier models. Download the app, "
    "open the playground or read the documentation to get started.\n\n"
)


def test_the_demo_catalog_has_the_size_of_a_real_one() -> None:
    assert (len(DEMO["packs"]), len(DEMO["pipelines"])) == (52, 21)
    assert 33_000 <= len(compact(DEMO)) <= 37_000
    assert 13_000 <= len(compact(DEMO["packs"])) <= 15_000
    assert 20_000 <= len(compact(DEMO["pipelines"])) <= 22_500
    named = {pack["name"] for pack in DEMO["packs"]}
    for chain in DEMO["pipelines"]:
        assert chain["id"].startswith("builtin.")
        assert set(chain["metadata"]["supersedes"]) <= named
        assert {step["pack"] for step in chain["metadata"]["steps"]} <= named


@pytest.mark.parametrize(
    ("intent", "worst_ranks"),
    [
        # six intents of real chats, each with its right tools
        ("fact check my notes and add citations", {"content.ground": 1}),
        (
            "remember this fact, then blog, then image",
            {"helmdeck.memory_store": 5, "blog.rewrite_for_audience": 8, "image.generate": 5},
        ),
        (
            LAUNCH + "Remember this launch, then draft a blog about it, then an illustration.",
            {"helmdeck.memory_store": 12, "builtin.brief-rewrite-blog": 20, "image.generate": 12},
        ),
        ("make a blog post from this PDF", {"builtin.doc-rewrite-blog": 1}),
        ("narrated presentation about this repo", {"builtin.repo-presentation": 1}),
        ("take a screenshot of github.com", {"browser.screenshot_url": 1}),
    ],
)
def test_the_right_tools_survive_in_the_fitted_catalog(
    intent: str, worst_ranks: dict[str, int]
) -> None:
    fitted = select(prepared(DEMO), intent=intent, budget=make_budget(tier=Tier.C))

    rank_of = {entry.id: entry.rank for entry in fitted.trim.kept}
    assert fitted.trim.fits
    assert fitted.trim.after_bytes >= 9_900
    for tool, worst in worst_ranks.items():
        assert rank_of[tool] <= worst, rank_of
        assert entries_of(fitted.catalog)[tool]["description"]


@pytest.mark.parametrize("room", [1_000, 3_000, 10_000, 12_000, 22_000, 30_000, 34_000])
def test_the_room_is_used_whatever_it_is(room: int) -> None:
    trim = fit(DEMO, room, "make a blog post from this PDF").trim

    assert 0.97 * room <= trim.after_bytes <= room


# --- picks, doubt and stable layouts -----------------------------------------------------------


def test_a_catalog_that_only_needs_compaction_can_be_laid_out_alike_for_all() -> None:
    intents = ["make a blog post from this PDF", "take a screenshot", "メールを送って"]
    budget = make_budget(tier=Tier.B, max_catalog_bytes=26_000, input_tokens=32_000)
    ready = prepared(DEMO)

    by_rank = [select(ready, intent=intent, budget=budget) for intent in intents]
    alike = [select(ready, intent=intent, budget=budget, stable=True) for intent in intents]

    assert len({compact(found.catalog) for found in by_rank}) > 1
    assert len({compact(found.catalog) for found in alike}) == 1
    assert all(found.is_stable and found.trim.fits for found in alike)
    assert alike[0].trim.after_bytes >= 0.97 * 26_000
    assert [entry.id for entry in alike[0].trim.kept] == [
        entry.id for entry in by_rank[0].trim.kept
    ]


def test_no_layout_is_alike_for_all_where_entries_have_to_go() -> None:
    budget = make_budget(tier=Tier.C, max_catalog_bytes=4_000)
    ready = prepared(DEMO)

    fitted = select(ready, intent="make a blog post", budget=budget, stable=True)

    assert not fitted.is_stable
    assert fitted.trim.removed


def test_a_pasted_page_that_needs_the_room_ends_the_stable_layout() -> None:
    budget = make_budget(tier=Tier.B, max_catalog_bytes=0, input_tokens=12_000)
    ready = prepared(DEMO)
    room = room_for_catalog(budget)

    assert stable_fits(ready, budget=budget)
    assert stable_fits(ready, budget=budget, fixed_bytes=room - len(compact(DEMO)))
    assert not stable_fits(ready, budget=budget, fixed_bytes=room - len(compact(DEMO)) + 1)


def test_what_a_filter_picks_is_shown_richly_where_the_ranking_left_it_out() -> None:
    intent = "frobnicate the zorgs with a quux"
    before = fit(DEMO, 3_000, intent)
    left_out = [entry.id for entry in before.trim.removed[:3]]

    after = fit(DEMO, 3_000, intent, preferred=left_out)

    shown = entries_of(after.catalog)
    assert before.doubt is not None
    assert before.trim.dropped[-1] == "lexical.low_confidence"
    assert all("description" in shown[id] for id in left_out)
    assert after.trim.after_bytes <= 3_000
    assert after.trim.dropped[-2:] == ("lexical.low_confidence", "llm_filter(picks=3,kept=3)")
    assert not {"lexical.low_confidence"} & {step.label for step in after.trim.steps}


def test_labels_come_steps_first_and_what_is_over_last() -> None:
    trim = fit(DEMO, 1, "frobnicate the zorgs", preferred=["blog.publish", "web.scrape"]).trim

    *steps, doubt, picks, over = trim.dropped
    assert steps == [step.label for step in trim.steps]
    assert doubt == "lexical.low_confidence"
    assert picks == "llm_filter(picks=2,kept=1)"
    assert over.startswith("still_over_budget(")


@laws
@given(catalog=catalogs(), room=st.integers(1, 20_000), intent=texts, tier=st.sampled_from(Tier))
def test_a_fit_made_again_from_its_receipt_shows_the_same_or_nothing(
    catalog: dict[str, Any], room: int, intent: str, tier: Tier
) -> None:
    fitted = fit(catalog, room, intent, tier=tier)

    shown = replay(prepared(catalog), receipt=to_json(fitted.trim), tier=tier)

    assert shown in (None, entries_of(fitted.catalog))


def test_a_fit_is_made_again_unless_rules_or_catalog_are_others() -> None:
    catalog = make_catalog(packs=30)
    fitted = fit(catalog, 4_000, "publish a post")
    receipt = to_json(fitted.trim)

    shown = replay(prepared(catalog), receipt=receipt, tier=Tier.C)

    assert shown == entries_of(fitted.catalog)
    assert fitted.trim.removed
    others = {"versions": {**receipt["versions"], "compaction": "another"}}
    assert replay(prepared(catalog), receipt={**receipt, **others}, tier=Tier.C) is None
    less = make_catalog(packs=29)
    assert replay(prepared(less), receipt=receipt, tier=Tier.C) is None
    assert replay(prepared(catalog), receipt={"kept": "?"}, tier=Tier.C) is None
