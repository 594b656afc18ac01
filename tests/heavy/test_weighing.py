"""What is heavy is seen without parsing: by its bytes, its strings and its values."""

from __future__ import annotations

import json

import pytest

from helmdash.heavy import is_heavy, is_quick

KIB, MIB = 1024, 1024 * 1024


def chat(count: int, text: str, *, indent: int | None = None) -> bytes:
    messages = [{"role": "user", "content": text}] * count
    return json.dumps({"model": "m", "messages": messages}, indent=indent).encode()


def values(each: list[object], *, count: int = 150_000) -> bytes:
    """Without a string that would count, and below a MiB."""
    return json.dumps({"input": each * count}, separators=(",", ":")).encode()[:MIB]


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
        pytest.param(values([1]), True, id="numbers"),
        pytest.param(values([[]]), True, id="empty lists"),
        pytest.param(values([{}]), True, id="empty objects"),
        pytest.param(values([True]), True, id="words"),
        pytest.param(values([[[[[1.5]]]]]), True, id="lists of lists"),
        pytest.param(values([1], count=20_000), False, id="as many as twenty texts in tokens"),
        pytest.param(chat(3, json.dumps([{"id": 1}] * 20_000)), False, id="values inside of texts"),
        pytest.param(chat(3, "\\" + "a, b[0], {c}; " * 20_000), False, id="code inside of texts"),
    ],
)
def test_a_body_is_heavy_by_its_bytes_and_by_what_they_say(body: bytes, heavy: bool) -> None:
    assert is_heavy(body) is heavy


@pytest.mark.parametrize(
    ("raw", "heavy"),
    [
        pytest.param("x, y " * 50_000, False, id="a long text"),
        pytest.param("<think>" * 50_000, True, id="more than a model writes"),
        pytest.param(json.dumps([{"tool": "a"}] * 1_000), False, id="a plan"),
        pytest.param("{" * 20_000, True, id="braces"),
        pytest.param("[" * 20_000, True, id="brackets"),
        pytest.param('{"a":' * 20_000, True, id="objects that never close"),
    ],
)
def test_where_texts_are_read_what_stands_inside_of_them_counts(raw: str, heavy: bool) -> None:
    body = json.dumps({"raw": raw}).encode()

    assert is_heavy(body, reads_texts=True) is heavy
    assert is_heavy(body) is False


@pytest.mark.parametrize(
    ("body", "quick"),
    [
        pytest.param(b"{}", True, id="nothing"),
        pytest.param(chat(20, "a few words, as people write them; " * 50), True, id="a talk"),
        pytest.param(chat(1, "x" * 70_000), False, id="long"),
        pytest.param(chat(600, "x"), False, id="many short messages"),
        pytest.param(values([1])[:60_000], False, id="numbers"),
        pytest.param(values([[]])[:60_000], False, id="empty lists"),
        pytest.param(values([{}])[:60_000], False, id="empty objects"),
        pytest.param(b'""' * (7 * KIB), False, id="strings"),
    ],
)
def test_what_a_loop_reads_itself_is_short_and_plain(body: bytes, quick: bool) -> None:
    assert is_quick(body) is quick
