"""Words that can be compared and not read: keyed hashes under a key of the project's own.

An unsalted hash of a short intent is guessable, and one of a long text never occurs twice. So it is
the words that are hashed, one by one, with a key derived from the server's signing key. A copy of
the database alone tells none of them. When the signing key changes, older hashes match nothing any
more: the history starts anew, nothing else happens.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from functools import lru_cache

from helmdash import conf
from helmdash.core.ranking.history import sketch_of

# Among the 10,000 or so words of a project's history, 40 bits collide once in 20,000 projects.
_WORD_BYTES = 5
_PURPOSE = b"helmdash hidden words 1"


def word_hasher(project_id: int) -> Callable[[str], str]:
    """The function that hashes single words of one project; the same word, the same hash."""
    return _word_hasher(conf.secret_key(conf.env()), project_id)


def hash_intent(project_id: int, intent: str) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """An intent's short hash (16 hex digits) and its sketch.

    The hash is that of the words of what is asked for, whatever their order, and without the text
    that was pasted around them: the same request about another paste is the same intent.
    """
    hash_word = word_hasher(project_id)
    sketch = sketch_of(intent, hash_word)
    said = " ".join(sorted(sketch[-1])) if sketch else intent.strip().lower()
    key = _key(conf.secret_key(conf.env()), project_id)
    digest = hmac.digest(key, f"intent {said}".encode("utf-8", "surrogatepass"), hashlib.sha256)
    return digest[:8].hex(), sketch


def hash_text(project_id: int, text: str) -> str:
    """A short keyed hash (16 hex digits) of any text, such as a step's arguments."""
    key = _key(conf.secret_key(conf.env()), project_id)
    said = f"value {text}".encode("utf-8", "surrogatepass")
    return hmac.digest(key, said, hashlib.sha256)[:8].hex()


@lru_cache(maxsize=64)
def _word_hasher(signing_key: str, project_id: int) -> Callable[[str], str]:
    key = _key(signing_key, project_id)

    @lru_cache(maxsize=20_000)
    def hash_word(word: str) -> str:
        said = f"word {word}".encode("utf-8", "surrogatepass")
        return hmac.digest(key, said, hashlib.sha256)[:_WORD_BYTES].hex()

    return hash_word


def _key(signing_key: str, project_id: int) -> bytes:
    said = _PURPOSE + b" %d" % project_id
    return hmac.digest(signing_key.encode(), said, hashlib.sha256)
