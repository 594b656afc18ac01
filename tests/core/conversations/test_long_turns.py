"""Fingerprints of long turns and long requests: the same whatever way the bytes are taken."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from helmdash.core.conversations.fingerprints import CHAIN_VERSION, ChatTurn, links_of


def _hash(kind: str, *turns: tuple[str, str]) -> str:
    """The rule, word by word (ADR 12): role, length and text of each turn."""
    digest = blake2b(digest_size=16, person=CHAIN_VERSION.encode())
    for role, text in turns:
        body = text.encode("utf-8", "surrogatepass")
        digest.update(b"%b\0%d\0%b" % (role.encode(), len(body), body))
    return kind + digest.hexdigest()


@pytest.mark.parametrize("size", [1, 2_000, 2_047, 2_048, 2_049, 4_094, 4_095, 70_000])
@pytest.mark.parametrize("count", [1, 3, 35, 101])
def test_of_any_length_the_hashes_are_those_of_the_rule(size: int, count: int) -> None:
    said = [
        ("assistant" if n % 2 else "user", f"{n} " + "ü" * (size // 2 or 1)) for n in range(count)
    ]
    turns = [ChatTurn("system", "You are short."), *(ChatTurn(*each) for each in said)]

    links = links_of(turns, reply=ChatTurn("assistant", "x" * size), is_retry=False)

    assert links.head == _hash("h", *said)
    assert links.reply == _hash("f", *said, ("assistant", "x" * size))
    beginnings = [n for n in range(count - 1) if n % 2 == 0][-16:][::-1]
    assert len(links.prefixes) == len(links.replies) == len(beginnings)
    for prefix, reply, n in zip(links.prefixes, links.replies, beginnings, strict=True):
        assert prefix in ("", _hash("h", *said[: n + 1]))
        assert reply == _hash("f", *said[: n + 2])
    if size >= 2_000 and count > 1:
        assert links.runs[0] == _hash("r", *[("assistant", ""), *said[1::2]][-2:])
        assert all(links.prefixes)
