"""What is heavy is seen without parsing: by its bytes, and by its strings."""

from __future__ import annotations

import json

import pytest

from helmdash.heavy import is_heavy

KIB, MIB = 1024, 1024 * 1024


def chat(count: int, text: str, *, indent: int | None = None) -> bytes:
    messages = [{"role": "user", "content": text}] * count
    return json.dumps({"model": "m", "messages": messages}, indent=indent).encode()


@pytest.mark.parametrize(
    ("body", "heavy"),
    [
        pytest.param(b"{}", False, id="nothing"),
        pytest.param(chat(400, "word " * 150), False, id="a long talk of an agent"),
        pytest.param(chat(600, "word"), True, id="more messages than a long talk has"),
        pytest.param(chat(3, '"role" ' * 9_000), False, id="the word inside of texts"),
        pytest.param(chat(3, 'a "quoted" word ' * 15_000), False, id="quotes inside of texts"),
        pytest.param(chat(5_000, "x"), True, id="many short messages"),
        pytest.param(chat(5_000, "x", indent=4), True, id="many short messages, spread out"),
        pytest.param(chat(5_000, "\\"), True, id="texts that end in a backslash"),
        pytest.param(b"[" * (2 * MIB), True, id="brackets only"),
        pytest.param(chat(1, "x" * MIB), True, id="a single long text"),
        pytest.param(b'""' * (7 * KIB), False, id="too small to be anything"),
    ],
)
def test_a_body_is_heavy_by_its_bytes_or_by_its_strings(body: bytes, heavy: bool) -> None:
    assert is_heavy(body) is heavy
