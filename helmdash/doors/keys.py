"""Whose a request is: the one place where the keys that came along become a caller.

`admit` is for all that runs on the server's event loop, `look_up` for a thread that has a database
connection already (Django's own requests in a test, a command). Both try the same keys in the same
order, so that no door lets in what another one refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote_plus

from django.utils import timezone

from helmdash.doors.directory import Directory, Standing
from helmdash.doors.faults import NoKey, UnknownKey
from helmdash.operations import access
from helmdash.queries.access import Caller, find_caller

_HEADERS = (b"x-api-key", b"x-goog-api-key")
_QUERY_NAME = b"key"


def presented_keys(headers: Mapping[bytes, bytes], query: bytes = b"") -> tuple[str, ...]:
    """Every key that came along, in the order they are tried; () where none did.

    A client may carry more than it knows of: a proxy's `Basic` credentials, a token of its own
    vendor beside the key. So a header that is no key of ours never hides one that is.
    query: the query string, where the protocol has its key there (Gemini's `?key=`).
    """
    found = [_bearer(headers.get(b"authorization", b""))]
    found += [headers.get(name, b"").strip() for name in _HEADERS]
    found += _in_query(query) if query else ()
    return tuple(dict.fromkeys(key.decode("latin-1") for key in found if key))


async def admit(
    directory: Directory, headers: Mapping[bytes, bytes], query: bytes = b""
) -> Standing:
    """What holds for the owner of the first known key.

    Raises NoKey, UnknownKey, and KeysUnavailable where the database is away.
    """
    keys = presented_keys(headers, query)
    if not keys:
        raise NoKey
    for key in keys:
        standing = await directory.find(key)
        if standing is not None:
            return standing
    raise UnknownKey


def look_up(keys: Sequence[str]) -> Caller:
    """The owner of the first known key, asked of the database here and now; its use is noted.

    Raises NoKey, UnknownKey, and what the database raises when it is away.
    """
    if not keys:
        raise NoKey
    for key in keys:
        caller = find_caller(key=key)
        if caller is not None:
            access.note_use(caller=caller, now=timezone.now())
            return caller
    raise UnknownKey


def _bearer(authorization: bytes) -> bytes:
    scheme, _, key = authorization.strip().partition(b" ")
    return key.strip() if scheme.lower() == b"bearer" else b""


def _in_query(query: bytes) -> list[bytes]:
    pairs = (part.partition(b"=") for part in query.split(b"&"))
    return [
        unquote_plus(value.decode("latin-1")).encode("latin-1", "replace")
        for name, _, value in pairs
        if name == _QUERY_NAME
    ][:1]
