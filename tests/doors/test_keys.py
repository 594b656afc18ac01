"""One rule for keys: which headers carry one, and which one counts."""

from __future__ import annotations

import pytest

from helmdash.doors.callers.keys import presented_keys


@pytest.mark.parametrize(
    ("headers", "query", "keys"),
    [
        ({}, b"", ()),
        ({b"authorization": b"Bearer k"}, b"", ("k",)),
        ({b"authorization": b"  bEARER   k  "}, b"", ("k",)),
        ({b"x-api-key": b" k "}, b"", ("k",)),
        ({b"x-goog-api-key": b"k"}, b"", ("k",)),
        # Credentials of a proxy, and empty ones, hide nothing.
        ({b"authorization": b"Basic dTpw", b"x-api-key": b"k"}, b"", ("k",)),
        ({b"authorization": b"Bearer", b"x-goog-api-key": b"k"}, b"", ("k",)),
        ({b"authorization": b"Bearer ", b"x-api-key": b"k"}, b"", ("k",)),
        # A client that carries several: each is tried, once.
        ({b"authorization": b"Bearer a", b"x-api-key": b"b"}, b"", ("a", "b")),
        ({b"authorization": b"Bearer a", b"x-api-key": b"a"}, b"", ("a",)),
        # Only where the protocol has it.
        ({}, b"alt=sse&key=k%2B1&key=other", ("k+1",)),
        ({}, b"monkey=k", ()),
        ({}, b"key=", ()),
    ],
)
def test_every_key_that_came_along_is_found(
    headers: dict[bytes, bytes], query: bytes, keys: tuple[str, ...]
) -> None:
    assert presented_keys(headers, query) == keys
