"""The head of a whole answer, as uvicorn would write it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE

# These say more than their bytes: uvicorn acts on them.
_TELLING = frozenset({b"connection", b"transfer-encoding"})


def head_of(status: int, headers: Sequence[tuple[bytes, bytes]]) -> bytes | None:
    """Status line and headers, with the empty line; None where a header says how the connection
    goes on, or none says how long the body is.

    Raises RuntimeError for bytes that no header may hold.
    """
    names = tuple([name for name, _ in headers])
    if b"content-length" not in names or not _TELLING.isdisjoint(names):
        return None
    _check_names(names)
    # All at once: a tab, which values may hold and names may not, stands between them.
    if HEADER_VALUE_RE.search(b"\t".join([told for _, told in headers])) is not None:
        raise RuntimeError("Invalid HTTP header value.")
    lines = [b"%b: %b\r\n" % header for header in headers]
    return b"%b%b\r\n" % (STATUS_LINE[status], b"".join(lines))


# One answer has the names of another.
@lru_cache(maxsize=256)
def _check_names(names: tuple[bytes, ...]) -> None:
    if HEADER_RE.search(b"".join(names)) is not None:
        raise RuntimeError("Invalid HTTP header name.")
