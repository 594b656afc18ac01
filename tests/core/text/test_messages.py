"""Canonical JSON and the chain of message hashes."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.text.messages import canonical_json, message_hash

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
MESSAGES = st.dictionaries(st.text(max_size=5), JSON, max_size=4)


def test_canonical_json_sorts_keys_at_every_level() -> None:
    assert canonical_json({"b": {"d": 1, "c": "é"}, "a": []}) == '{"a":[],"b":{"c":"é","d":1}}'


@given(message=MESSAGES)
@settings(max_examples=40, deadline=None)
def test_key_order_does_not_change_a_hash(message: dict[str, object]) -> None:
    reordered = dict(reversed(message.items()))

    assert message_hash(message) == message_hash(reordered)
    assert json.loads(canonical_json(message)) == message


def test_a_hash_names_its_algorithm() -> None:
    tag, _, digest = message_hash({"role": "user", "content": "hi"}).partition(":")

    assert tag == "b2"
    assert len(digest) == 32
    assert int(digest, 16) >= 0


def test_the_chain_depends_on_everything_before() -> None:
    first, second = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    start = message_hash(first)

    assert message_hash(second, start) != message_hash(second)
    assert message_hash(second, start) != message_hash(second, message_hash(second))
    assert message_hash(second, start) == message_hash(dict(second), message_hash(dict(first)))


def test_a_lone_surrogate_can_be_hashed() -> None:
    assert message_hash({"content": json.loads('"\\udfff"')}).startswith("b2:")
