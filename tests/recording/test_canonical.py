"""The faster writer of canonical JSON writes what the plain one does, to the letter."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from helmdash.core.text.messages import canonical_bytes
from helmdash.operations.recording.judged.canonical import canonical

# Lone surrogates, control characters and numbers of any length and kind among them.
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(value=_VALUES)
@example(value={"a": 1e16, "b": 1e-7, "c": float("nan")})
@example(value={"\ud800": 2**64, "\x7f": "\x00\x1f\u2028", "é": (1, {"z": 0, "a": -0.0})})
@settings(max_examples=150, deadline=None)
def test_both_writers_give_the_same_bytes(value: Any) -> None:
    assert canonical(value) == canonical_bytes(value)
