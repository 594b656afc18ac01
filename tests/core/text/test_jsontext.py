"""JSON in texts: a code fence is taken off whatever stands in it, at once."""

from __future__ import annotations

import time

import pytest

from helmdash.core.text.jsontext import unfence


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```json\n{}\n```", "{}"),
        ("~~~ json {} ~~~~ \n", "{}"),
        ("```\n{}``", "{}``"),
        ("```{}~~~```", "{}~~~"),
        ("```", ""),
        ("```\n```\n1", "```\n1"),
        (" \ufeff{} ", "{}"),
    ],
)
def test_a_fence_is_taken_off(text: str, inside: str) -> None:
    assert unfence(text) == inside


@pytest.mark.parametrize("before", ["```", "```\n"])
@pytest.mark.parametrize("sign", [" ", "`", "~"])
def test_a_hostile_fence_is_fast(before: str, sign: str) -> None:
    began = time.thread_time()
    unfence(f"{before}{sign * 10_000}x")
    # Microseconds; up to 2 s where what follows is read again from each of its signs.
    assert time.thread_time() - began < 0.2
