"""A history that grows is hashed once, and as if each call came alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helmdash.core.text.messages import canonical_bytes, message_hash
from helmdash.operations.recording.judged import histories
from helmdash.operations.recording.judged.histories import Histories

# Values that Python takes for equal and JSON does not, and keys in either order.
VALUES = st.sampled_from(["a", "", 1, 1.0, True, 0, False, None, ["a"], [1], [True], {"x": 1.0}])
MESSAGE = st.dictionaries(st.sampled_from(["role", "content", "name"]), VALUES, max_size=3)
CALL = st.tuples(st.sampled_from([None, "one", "two"]), st.lists(MESSAGE, max_size=5))


def alone(messages: list[dict[str, Any]]) -> tuple[list[str], list[int]]:
    hashes: list[str] = []
    for message in messages:
        hashes.append(message_hash(message, hashes[-1] if hashes else None))
    return hashes, [len(canonical_bytes(message)) for message in messages]


@given(calls=st.lists(CALL, max_size=8))
def test_what_came_before_changes_no_hash(calls: list[tuple[str | None, list[Any]]]) -> None:
    known = Histories()
    for conversation, messages in calls:
        history = known.take(conversation, messages)
        assert (history.hashes, history.sizes) == alone(messages)


def test_what_is_resent_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []

    def write(message: object) -> bytes:
        written.append(message)
        return canonical_bytes(message)

    monkeypatch.setattr(histories, "canonical", write)
    turns = [{"role": "user", "content": f"turn {number}"} for number in range(6)]
    known = Histories()

    for length in (2, 4, 6):
        assert known.take("talk", turns[:length]).hashes == alone(turns[:length])[0]
    assert written == turns
