"""Routes: a recommendation that can be called, an honest none, or an invention put right."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.answers import to_json
from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.planning.plans import ArgFault, PlannedRoute, RouteKind, UnusablePlan
from helmdash.core.planning.route_reading import decode_route, is_route_shaped, read_route
from tests.core.catalogs import make_pack, make_pipeline

CATALOG = parse_catalog(
    {
        "packs": [
            make_pack("blog.publish"),
            make_pack("web.scrape", input_schema={"type": "object"}),
            make_pack("fs.read"),
            make_pack("fs.write"),
            make_pack("helmdeck.route"),
            make_pack("mail.send", input_schema={"required": ["to"]}),
        ],
        "pipelines": [
            make_pipeline("builtin.blog", metadata={"inputs": {"brief": "string"}}),
            make_pipeline("builtin.mail", metadata={"inputs": {"to": {"required": True}}}),
        ],
    }
)
GO: dict[str, object] = {"kind": "pack", "id": "web.scrape"}
PROPOSAL = {
    "name": "video.captions",
    "input_schema": {"type": "object"},
    "output_schema": {"type": "object"},
    "integration_pattern": "before content.ground",
    "why_useful": "talks become text",
}
PLACEHOLDER = {
    "name": "TBD",
    "input_schema": {},
    "output_schema": {},
    "integration_pattern": "TBD",
    "why_useful": "Ask the user what the missing step should do, then route again.",
}


def all_faulty(schema: object, args: Mapping[str, object]) -> tuple[ArgFault, ...]:
    return tuple(ArgFault(name, "is wrong") for name in args)


def make_route(
    value: object,
    *,
    suggest: Callable[[str], tuple[str, ...]] = lambda text: ("fs.read",),
    partial: bool = False,
) -> PlannedRoute:
    return read_route(
        value,
        catalog=CATALOG,
        intent="Caption the talk.",
        check_args=all_faulty,
        suggest=suggest,
        partial=partial,
    )


def chosen(**members: object) -> PlannedRoute:
    return make_route({"recommendation": {**GO, **members}})


@pytest.mark.parametrize(
    ("value", "shaped"),
    [
        ({"recommendation": GO}, True),
        ({"recommendation": None}, True),  # an honest none
        ({"recommendation": "web.scrape"}, True),
        ({"route": {"recommendation": GO}}, True),
        ({"recommendation": "Buy the blue one."}, False),
        ({"recommendation": 3}, False),
        ({"gap_warning": {"missing_capability": "captions"}}, True),  # an honest none
        ({"answer": {"gap_warning": {"proposed_pack": {"name": "a.b"}}}}, True),
        ({"gap_warning": {}, "reasoning": "r"}, False),
        ({"gap_warning": {"type": "object"}}, False),  # a schema
        ({"recommendations": [GO]}, False),
        (GO, False),  # could be an alternative
        ({}, False),
        ([GO], False),
        (None, False),
    ],
)
def test_a_route_is_known_by_its_recommendation(value: object, shaped: bool) -> None:
    assert is_route_shaped(value) is shaped


def test_a_lone_recommendation_counts_where_there_is_no_route() -> None:
    found = decode_route('Take {"kind": "pack", "id": "web.scrape"}!')

    assert make_route(found.value).recommendation.id == "web.scrape"


EMPTY: dict[str, object] = {"recommendation": {"kind": "none", "id": ""}}


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({"recommendation": {}}, {"recommendation": GO}, "second"),
        (EMPTY, {"recommendation": GO}, "second"),
        ({"recommendation": None}, {"recommendation": ["web.scrape"]}, "second"),
        ({"recommendation": GO}, EMPTY, "first"),
        ({"recommendation": "none"}, {"route": {"recommendation": GO}}, "second"),
        # A none that says why is an answer.
        ({**EMPTY, "gap_warning": {"missing_capability": "c"}}, {"recommendation": GO}, "first"),
        ({"gap_warning": {"missing_capability": "c"}}, {"recommendation": GO}, "second"),
        ({"gap_warning": {"missing_capability": "c"}, "alternatives": [GO]}, GO, "first"),
        (EMPTY, GO, "first"),  # a lone recommendation may be an alternative
    ],
)
def test_a_route_that_says_something_goes_before_an_empty_one(
    first: object, second: object, found: str
) -> None:
    raw = f"{json.dumps(first)}\nThat is:\n{json.dumps(second)}"

    assert decode_route(raw).value == (first if found == "first" else second)


def test_a_gap_alone_is_an_honest_none() -> None:
    route = make_route({"gap_warning": {"missing_capability": "captions"}, "reasoning": "None."})

    assert (route.recommendation.kind, route.recommendation.id) == (RouteKind.NONE, "")
    assert route.gap_warning is not None
    assert (route.gap_warning.missing_capability, route.reasoning) == ("captions", "None.")
    with pytest.raises(UnusablePlan) as refused:
        make_route({"gap_warning": {"missing_capability": "captions"}}, partial=True)
    assert refused.value.rule == "route.cut_off"


@pytest.mark.parametrize(
    ("members", "faults"),
    [
        ({"suggested_inputs": "a page"}, [("", "is a text; it must be an object")]),
        ({"id": "builtin.blog", "args": [1]}, [("", "is a list; it must be an object")]),
        (
            {"id": "builtin.blog", "args": {"id": "builtin.blog", "inputs": 3}},
            [("", "is a number; it must be an object")],
        ),
    ],
)
def test_inputs_that_are_no_object_are_told_as_a_whole(
    members: dict[str, Any], faults: object
) -> None:
    got = chosen(**members).recommendation

    assert got.suggested_inputs == {}
    assert [(fault.field, fault.message) for fault in got.arg_faults] == faults


@pytest.mark.parametrize(
    ("inputs", "missing"), [(None, ("to",)), ({}, ("to",)), ({"to": "{{who}}"}, ())]
)
def test_a_recommendation_tells_what_is_still_to_be_filled_in(
    inputs: object, missing: tuple[str, ...]
) -> None:
    for entry in ("mail.send", "builtin.mail"):
        got = chosen(id=entry, suggested_inputs=inputs).recommendation

        assert got.missing_args == missing


def test_a_recommendation_stays_as_it_is() -> None:
    route = make_route(
        {
            "recommendation": {**GO, "suggested_inputs": {"url": "u"}, "why": "It reads."},
            "alternatives": [{"kind": "pack", "id": "fs.read", "why": "if it is a file"}],
            "gap_warning": None,
            "reasoning": "A page.",
        }
    )

    got = route.recommendation
    assert (got.kind, got.id, got.why) == (RouteKind.PACK, "web.scrape", "It reads.")
    assert (got.suggested_inputs, got.arg_faults) == ({"url": "u"}, (ArgFault("url", "is wrong"),))
    assert [(other.id, other.why) for other in route.alternatives] == [
        ("fs.read", "if it is a file")
    ]
    assert (route.gap_warning, route.reasoning, route.notes) == (None, "A page.", ())


@pytest.mark.parametrize(
    ("members", "kind", "note"),
    [
        ({"kind": "pipeline"}, RouteKind.PACK, "web.scrape is a pack, not a pipeline."),
        ({"kind": "tool"}, RouteKind.PACK, "web.scrape is a pack, not a tool."),
        ({"id": "builtin.blog"}, RouteKind.PIPELINE, "builtin.blog is a pipeline, not a pack."),
        ({"id": "web_scrape"}, RouteKind.PACK, '"web_scrape" was read as web.scrape.'),
    ],
)
def test_kind_and_spelling_are_put_right(
    members: dict[str, object], kind: RouteKind, note: str
) -> None:
    route = chosen(**members)

    assert (route.recommendation.kind, route.notes) == (kind, (note,))


@pytest.mark.parametrize(
    "members",
    [
        {"kind": "pipeline", "id": "builtin.blog", "suggested_inputs": {"brief": "b"}},
        {"id": "helmdeck__pipeline-run", "args": {"id": "builtin.blog", "inputs": {"brief": "b"}}},
    ],
)
def test_a_pipeline_is_recommended_by_its_id_with_its_inputs(members: dict[str, Any]) -> None:
    got = make_route({"recommendation": members}).recommendation

    assert (got.kind, got.id) == (RouteKind.PIPELINE, "builtin.blog")
    assert got.suggested_inputs == {"brief": "b"}
    assert [fault.field for fault in got.arg_faults] == ["brief"]


@pytest.mark.parametrize(
    "recommendation",
    [
        None,
        {},
        "none",
        {"kind": "none", "id": ""},
        {"kind": "none", "id": None},
        {"kind": "pack", "id": ""},
        {"kind": "pack", "id": "none"},
        {"id": "N/A"},
        {"kind": "pack", "id": "unknown"},  # what a plan calls a part that nothing does
    ],
)
def test_an_honest_none_is_no_invention(recommendation: object) -> None:
    route = make_route({"recommendation": recommendation, "reasoning": "Nothing does."})

    assert (route.recommendation.kind, route.recommendation.id) == (RouteKind.NONE, "")
    assert (route.reasoning, route.notes) == ("Nothing does.", ())
    assert route.gap_warning is not None
    assert route.gap_warning.missing_capability == "Caption the talk."
    told = to_json(route.gap_warning)
    assert (told["proposed_pack"], route.gap_warning.suggestions) == (
        PLACEHOLDER,
        ("fs.read",),
    )


def test_what_is_named_beside_a_none_is_an_alternative() -> None:
    route = chosen(kind="none")

    assert route.recommendation.kind is RouteKind.NONE
    assert [other.id for other in route.alternatives] == ["web.scrape"]
    assert "see alternatives" in route.notes[0]


@pytest.mark.parametrize(
    ("id", "told"),
    [
        ("video.captions", 'Tool "video.captions" is not in the catalog'),
        ("helmdeck.route", "cannot call itself"),
        ("web.scraping", "not in the catalog"),
    ],
)
def test_an_invention_is_demoted_and_never_replaced(id: str, told: str) -> None:
    invented: object = {**GO, "id": id}

    route = make_route({"recommendation": invented, "alternatives": [GO], "reasoning": "It fits."})

    assert (route.recommendation.kind, route.recommendation.id) == (RouteKind.NONE, "")
    assert [other.id for other in route.alternatives] == ["web.scrape"]
    assert told in route.reasoning
    assert route.reasoning.endswith(", so nothing is recommended. It fits.")
    assert route.gap_warning is not None
    assert route.gap_warning.suggestions[-1] == "fs.read"


def test_near_spellings_are_suggested_first() -> None:
    warning = chosen(id="web.scraping").gap_warning

    assert warning is not None
    assert warning.suggestions == ("web.scrape", "fs.read")


@pytest.mark.parametrize(
    ("given_alternatives", "ids", "notes"),
    [
        (["fs.read", {"kind": "pipeline", "id": "fs.write"}], ["fs.read", "fs.write"], 0),
        (["fs.read", "fs_read", "web.scrape"], ["fs.read"], 2),  # twice, and the recommended one
        (["nope", "helmdeck.route", None, 3, ""], [], 4),
        (["fs.read", "fs.write", "blog.publish", "builtin.blog"], None, 1),
        ({"id": "fs.read"}, ["fs.read"], 0),
        ("fs.read", ["fs.read"], 0),
        (None, [], 0),
    ],
)
def test_alternatives_are_real_distinct_and_few(
    given_alternatives: object, ids: list[str] | None, notes: int
) -> None:
    route = make_route({"recommendation": GO, "alternatives": given_alternatives})

    expected = ["fs.read", "fs.write", "blog.publish"] if ids is None else ids
    assert [other.id for other in route.alternatives] == expected
    assert len(route.notes) == notes


@pytest.mark.parametrize(
    ("warning", "missing", "proposed"),
    [
        (
            {"missing_capability": "captions", "proposed_pack": PROPOSAL},
            "captions",
            PROPOSAL,
        ),
        ({"missing_capability": "captions"}, "captions", PLACEHOLDER),
        ("captions", "captions", PLACEHOLDER),
        (
            {"proposed_pack": {"name": "video.captions", "input_schema": "a file"}},
            "Caption the talk.",
            {**PLACEHOLDER, "name": "video.captions"},
        ),
        (
            {"missing_capability": "c", "proposed_pack": "video.captions"},
            "c",
            {**PLACEHOLDER, "name": "video.captions"},
        ),
    ],
)
def test_a_gap_is_told_in_its_full_shape_beside_a_recommendation(
    warning: object, missing: str, proposed: object
) -> None:
    route = make_route({"recommendation": GO, "gap_warning": warning})

    assert route.recommendation.id == "web.scrape"
    assert route.gap_warning is not None
    assert route.gap_warning.missing_capability == missing
    assert to_json(route.gap_warning.proposed_pack) == proposed


@pytest.mark.parametrize("warning", [None, {}, "", "none", [], 3, {"missing_capability": "None"}])
def test_a_gap_that_says_nothing_is_none(warning: object) -> None:
    assert make_route({"recommendation": GO, "gap_warning": warning}).gap_warning is None


def test_a_proposal_of_what_exists_is_noted() -> None:
    gap = {"missing_capability": "reading", "proposed_pack": {"name": "fs.read"}}

    assert (
        "in the catalog already" in make_route({"recommendation": GO, "gap_warning": gap}).notes[0]
    )


def test_a_cut_reply_keeps_a_written_recommendation_only() -> None:
    assert make_route({"recommendation": GO}, partial=True).partial
    for cut in ({}, {"kind": "pack"}, None):
        with pytest.raises(UnusablePlan) as refused:
            make_route({"recommendation": cut}, partial=True)
        assert refused.value.rule == "route.cut_off"


words = st.sampled_from(["recommendation", "alternatives", "gap_warning", "kind", "id", "inputs"])
ids = st.sampled_from(["web.scrape", "builtin.blog", "nope", "none", "helmdeck.route", "\0", ""])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ids | words | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(words | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=20,
)
likely_routes = st.fixed_dictionaries(
    {"recommendation": st.fixed_dictionaries({"id": ids | json_values}) | json_values},
    optional={
        "alternatives": st.lists(ids | json_values, max_size=5) | json_values,
        "gap_warning": st.fixed_dictionaries(
            {}, optional={"missing_capability": json_values, "proposed_pack": json_values}
        )
        | json_values,
        "reasoning": json_values,
    },
)


@settings(max_examples=100, deadline=None)
@given(json_values | likely_routes, st.booleans())
def test_any_value_becomes_a_route_or_is_refused(value: object, partial: bool) -> None:
    try:
        route = make_route(value, partial=partial)
    except UnusablePlan:
        return

    known = {entry.id for entry in CATALOG.entries} - {"helmdeck.route"}
    is_none = route.recommendation.kind is RouteKind.NONE
    assert (route.recommendation.id == "") is is_none
    assert is_none or route.recommendation.id in known
    assert not is_none or route.gap_warning is not None
    others = [other.id for other in route.alternatives]
    assert set(others) <= known - {route.recommendation.id}
    assert len(others) == len(set(others)) <= 3
