"""Whose a request is: the one place where the keys that came along become a caller.

`admit` is for all that runs on the server's event loop, `look_up` for a thread that has a database
connection already (Django's own requests in a test, a command). Both try the same keys in the same
order, so that no door lets in what another one refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from urllib.parse import unquote_plus

from django.utils import timezone

from helmdash.doors.callers.directory import MAX_AGE_S, Directory, KeyContext
from helmdash.doors.faults import ExpiredKey, Fault, NoKey, UnknownKey
from helmdash.doors.limits import key_limits, require_valid
from helmdash.operations.access.keys import note_use
from helmdash.queries.access.access import Caller, find_caller

_HEADERS = (b"x-api-key", b"x-goog-api-key")
_OTHERS = frozenset(_HEADERS)
_QUERY_NAME = b"key"


def presented_keys(headers: Mapping[bytes, bytes], query: bytes = b"") -> tuple[str, ...]:
    """Every key that came along, in the order they are tried; () where none did.

    A client may carry more than it knows of: a proxy's `Basic` credentials, a token of its own
    vendor beside the key. So a header that is no key of ours never hides one that is.
    query: the query string, where the protocol has its key there (Gemini's `?key=`).
    """
    bearer = _bearer(headers.get(b"authorization", b""))
    if not query and _OTHERS.isdisjoint(headers):  # as of nearly all clients
        return (bearer.decode("latin-1"),) if bearer else ()
    found = [bearer]
    found += [headers.get(name, b"").strip() for name in _HEADERS]
    found += _in_query(query) if query else ()
    return tuple(dict.fromkeys(key.decode("latin-1") for key in found if key))


async def admit(
    directory: Directory, headers: Mapping[bytes, bytes], query: bytes = b"", *, address: str
) -> KeyContext:
    """What holds for the owner of the first known key; a request of it is counted.

    address: whom limits count the request as (doors.callers.proxies.address_of). Raises NoKey,
    UnknownKey, ExpiredKey, TooManyWrongKeys, TooManyRequests, and KeysUnavailable where the
    database is unavailable.
    """
    keys = presented_keys(headers, query)
    if not keys:
        raise NoKey
    held = key_limits()
    fault: Fault | None = None
    for key in held.worth_looking_up(keys, address):
        key_context = await directory.find(key)
        if key_context is None:
            continue
        try:
            held.let_in(key, key_context.caller)
        except ExpiredKey as expired:
            fault = expired
        else:
            return key_context
    raise fault or held.turn_away(keys, address)


async def admit_again(
    directory: Directory,
    headers: Mapping[bytes, bytes],
    query: bytes = b"",
    *,
    key_context: KeyContext,
    since: float,
) -> KeyContext:
    """What holds for the owner of a key now that the body has come: one that comes slowly must not
    outlive a key that was revoked meanwhile. Not counted as another request.

    key_context: of the head. since: when that was looked up, by time.monotonic; while it holds
    anyway, nothing is asked. Raises UnknownKey, ExpiredKey, and KeysUnavailable as `admit` does.
    """
    if monotonic() - since < MAX_AGE_S:
        return key_context
    for key in presented_keys(headers, query):
        found = await directory.find(key)
        if found is not None and found.caller.key_id == key_context.caller.key_id:
            require_valid(found.caller)
            return found
    raise UnknownKey


def look_up(keys: Sequence[str], *, address: str) -> Caller:
    """The owner of the first known key, asked of the database here and now; its use is noted.

    Raises what `admit` raises, and what the database raises when it is unavailable.
    """
    if not keys:
        raise NoKey
    held = key_limits()
    fault: Fault | None = None
    for key in held.worth_looking_up(keys, address):
        caller = find_caller(key=key)
        if caller is None:
            continue
        try:
            held.let_in(key, caller)
        except ExpiredKey as expired:
            fault = expired
        else:
            note_use(caller=caller, now=timezone.now())
            return caller
    raise fault or held.turn_away(keys, address)


def owner_of(key_context: KeyContext) -> str:
    """Under which name the bodies of a key are counted (helmdash.doors.body)."""
    return f"key {key_context.caller.key_id}"


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
