"""Messages by content: canonical JSON and the hash that addresses a message and its history.

A client resends its whole history with every call. Hashing each message together with the hash of
what came before it gives a chain: the same prefix always ends in the same hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

# Names the algorithm inside the value, so that a later change of algorithm cannot pass unseen.
_TAG = "b2:"
# Of a hash: enough to tell any two messages of a project, and in both kinds of keys.
HASH: Final = slice(3, 27)
# How a key of a stored message begins that has the moment it was first stored before its hash.
TIMED: Final = "b3:"
_TIMED_HASH: Final = slice(-24, None)
# 16 bytes: accidental collisions stay out of reach for any number of messages one database holds.
_DIGEST_BYTES = 16

_CANONICAL = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def canonical_json(value: object) -> str:
    """Give the one JSON text of a value: compact, keys sorted, Unicode unescaped."""
    return _CANONICAL.encode(value)


def canonical_bytes(value: object) -> bytes:
    """`canonical_json` in UTF-8; a lone surrogate is three bytes."""
    return canonical_json(value).encode("utf-8", "surrogatepass")


def message_hash(message: Mapping[str, object], parent: str | None = None) -> str:
    """Hash a message, and with `parent` (the hash before it) the whole history up to it.

    parent None: nothing stands before it. Key order does not matter; gives "b2:" and 32 hex digits.
    """
    return canonical_hash(canonical_bytes(message), parent)


def canonical_hash(text: bytes, parent: str | None = None) -> str:
    """Hash a message whose canonical JSON is at hand: what `message_hash` gives for the message.
    parent None: nothing stands before it."""
    whole = b"%s\n%s" % ((parent or "").encode(), text)
    return _TAG + blake2b(whole, digest_size=_DIGEST_BYTES).hexdigest()


def canonical_hashes(texts: Iterable[bytes], before: str = "") -> list[str]:
    """Of a history, each message hashed with what stands before it, as `canonical_hash` does.
    before: the hash of what stands before all of them; "": nothing does."""
    hashes: list[str] = []
    for text in texts:
        digest = blake2b(f"{before}\n".encode() + text, digest_size=_DIGEST_BYTES)
        hashes.append(before := _TAG + digest.hexdigest())
    return hashes


def hash_of_key(key: str) -> str:
    """What of a stored message's key tells it, with all that stood before it: the same under
    whichever key it was stored."""
    return key[_TIMED_HASH] if key.startswith(TIMED) else key[HASH]
