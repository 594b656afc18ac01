"""Single members of a JSON body change; every other byte stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.providers.shared.bodies import (
    read_object,
    to_json,
    with_items,
    with_members,
    without_members,
)
from helmdash.providers.shared.images import image_from_url, url_of_image
from helmdash.providers.wire import Image

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["model", "a", 'q"', "{", "\\"]), inner, max_size=3)
    ),
    max_leaves=8,
)
BODIES = st.dictionaries(
    st.sampled_from(["model", "messages", "x", "stream_options", "ü", 'q"', "usage"]),
    VALUES,
    max_size=5,
)


def change(body: bytes, changes: dict[str, Any], **renamed: str) -> bytes:
    return with_members(body, json.loads(body), changes, renamed=renamed)


def test_only_the_value_changes() -> None:
    body = b'{ "messages" : [ ],\n  "model" :  "a/b" , "n":1.0 }'

    assert change(body, {"model": "b"}) == b'{ "messages" : [ ],\n  "model" :  "b" , "n":1.0 }'


def test_nothing_to_change_gives_the_very_same_bytes() -> None:
    body = b'{ "model": "m" }'

    assert change(body, {"model": "m"}) is body


@pytest.mark.parametrize(
    ("body", "changes", "expected"),
    [
        # absent: put first
        (b'{"a":1}', {"b": 2}, b'{"b":2,"a":1}'),
        (b"{}", {"b": 2}, b'{"b":2}'),
        (b" { \n } ", {"b": 2}, b' {"b":2 \n } '),
        # the same word deeper down, and in a text
        (
            b'{"t":[{"model":"x"}],"s":"\\"model\\":","model":"a"}',
            {"model": "b"},
            b'{"t":[{"model":"x"}],"s":"\\"model\\":","model":"b"}',
        ),
        # said twice: the last one counts, so it is written anew
        (b'{"model":"a","model":"c"}', {"model": "b"}, b'{"model":"b"}'),
        # spelled with escapes, beside a deeper one that is not
        (
            b'{"t":{"model":"x"},"mod\\u0065l":"a"}',
            {"model": "b"},
            b'{"t":{"model":"x"},"model":"b"}',
        ),
        # an object as a value
        (
            b'{"stream_options": {"x": [1, "}"]}, "a":1}',
            {"stream_options": {"y": 2}},
            b'{"stream_options": {"y":2}, "a":1}',
        ),
        # true is not 1
        (b'{"a":1}', {"a": True}, b'{"a":true}'),
    ],
)
def test_members_are_set_in_place(body: bytes, changes: dict[str, Any], expected: bytes) -> None:
    assert change(body, changes) == expected


def test_a_member_is_renamed_in_place() -> None:
    body = b'{"model":"m", "max_tokens" : 5, "messages":[]}'

    changed = change(body, {}, max_tokens="max_completion_tokens")

    assert changed == b'{"model":"m", "max_completion_tokens" : 5, "messages":[]}'


@settings(max_examples=80, deadline=None)
@given(body=BODIES, value=VALUES, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_a_set_member_says_the_new_value_and_no_other_changes(
    body: dict[str, Any], value: Any, indent: int | None, ascii_only: bool
) -> None:
    raw = json.dumps(body, indent=indent, ensure_ascii=ascii_only).encode()

    changed = change(raw, {"model": value})

    assert json.loads(changed) == body | {"model": value}


@settings(max_examples=80, deadline=None)
@given(
    items=st.lists(VALUES, max_size=6),
    picks=st.lists(st.integers(min_value=-2, max_value=5), max_size=8),
    indent=st.sampled_from([None, 1]),
    rest=BODIES,
    is_last=st.booleans(),
    is_longer=st.booleans(),
)
def test_an_array_is_set_to_items_of_its_own_and_new_ones(
    items: list[Any],
    picks: list[int],
    indent: int | None,
    rest: dict[str, Any],
    is_last: bool,
    is_longer: bool,
) -> None:
    parsed = {**rest, "items": items} | ({} if is_last else {"last": [1]})
    wanted: list[Any] = [pick if 0 <= pick < len(items) else {"new": pick} for pick in picks]
    wanted = [*range(len(items)), *wanted] if is_longer else wanted

    body, said = with_items(json.dumps(parsed, indent=indent).encode(), parsed, "items", wanted)

    assert json.loads(body) == said
    assert said == {**parsed, "items": [items[w] if isinstance(w, int) else w for w in wanted]}


def test_items_keep_their_bytes_and_those_between_them() -> None:
    body = b'{"a": "messages", "m" : [ {"x": 1.0 },  {"y":[ ]}, "z" ], "b":2}'

    def changed(wanted: list[Any], raw: bytes = body) -> bytes:
        return with_items(raw, json.loads(raw), "m", wanted)[0]

    assert changed([0, 1, 2]) is body
    assert changed([0, 1, {"n": 3}]) == (
        b'{"a": "messages", "m" : [{"x": 1.0 },  {"y":[ ]},{"n":3}], "b":2}'
    )
    assert changed([{"n": 3}, 2]) == b'{"a": "messages", "m" : [{"n":3},"z"], "b":2}'
    # only added to, as the last member and as another
    assert changed([0, {"n": "]}"}], b'{"b": "]", "m" : [ {"x":[ "]}" ] } ] }') == (
        b'{"b": "]", "m" : [ {"x":[ "]}" ] } ,{"n":"]}"}] }'
    )
    assert changed([0, {}], b'{"m":[1],"t":[2]}') == b'{"m":[1,{}],"t":[2]}'
    assert changed([0, {}], b'{"m":[1],"t":[0],"t":[2]}') == b'{"m":[1,{}],"t":[0],"t":[2]}'
    # said twice, and spelled in another way: the last one counts, so it is written anew
    assert changed([0, {}], b'{"m":[1,2],"m":[3]}') == b'{"m":[3,{}]}'
    assert changed([{}], b'{"m":[1],"\\u006d":[2]}') == b'{"m":[{}]}'
    # no array
    assert changed([0, {"n": 3}], b'{"m":{"x":1}}') == b'{"m":[{"x":1},{"n":3}]}'


@settings(max_examples=80, deadline=None)
@given(body=BODIES, indent=st.sampled_from([None, 1]))
def test_a_taken_out_member_leaves_the_others(body: dict[str, Any], indent: int | None) -> None:
    raw = json.dumps(body, indent=indent, ensure_ascii=False).encode()

    kept = without_members(raw, ("usage", "model"))

    rest = {name: value for name, value in body.items() if name not in ("usage", "model")}
    assert kept is None or json.loads(kept) == rest
    assert kept is not None or not body  # an empty object has no members to find


@pytest.mark.parametrize("body", [b"", b"[", b"[1]", b"null", b'{"a"', b"\xff", b"[" * 2000])
def test_what_is_no_object_is_none(body: bytes) -> None:
    assert read_object(body) is None


def test_compact_json_keeps_other_letters() -> None:
    assert to_json({"a": "ü", "b": (1, 2)}) == '{"a":"ü","b":[1,2]}'.encode()


@pytest.mark.parametrize(
    ("url", "image"),
    [
        ("data:image/png;base64,iVBORw0", Image(media_type="image/png", data="iVBORw0")),
        # a parameter between
        ("data:image/jpeg;charset=x;base64,/9j/", Image(media_type="image/jpeg", data="/9j/")),
        # no media type: told by the first bytes
        ("data:;base64,R0lGODlh", Image(media_type="image/gif", data="R0lGODlh")),
        ("https://example.org/a.png", Image(url="https://example.org/a.png")),
        # not base64: left alone
        ("data:image/svg+xml,<svg/>", Image(url="data:image/svg+xml,<svg/>")),
    ],
)
def test_data_urls_are_taken_apart(url: str, image: Image) -> None:
    assert image_from_url(url) == image


def test_an_image_goes_back_into_its_url() -> None:
    url = "data:image/webp;base64,UklGRg=="

    assert url_of_image(image_from_url(url)) == url
