"""Keys of upstreams, encrypted at rest with a key derived from the server's signing key.

So a copy of the database alone tells no key. When the signing key changes, they cannot be read any
more and have to be entered again.
"""

from __future__ import annotations

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from helmdash import conf

# Names the purpose, so that the signing key serves others without telling them anything.
_PURPOSE = b"helmdash keys of upstreams 1"


def seal(secret: str) -> str:
    """Encrypt a secret, as text for a column."""
    return _cipher().encrypt(secret.encode()).decode("ascii")


def unseal(sealed: str) -> str | None:
    """The secret again; None when it was sealed under another signing key, or is damaged."""
    try:
        return _cipher().decrypt(sealed.encode()).decode()
    except (InvalidToken, UnicodeError):
        return None


def _cipher() -> Fernet:
    return _cipher_of(conf.secret_key(conf.env()))


@lru_cache(maxsize=4)
def _cipher_of(signing_key: str) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE)
    return Fernet(base64.urlsafe_b64encode(derived.derive(signing_key.encode())))
