"""The head of a request: what of it is refused, and where its body ends."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from helmdash.doors.answers import PAGE_CSP, page_about
from helmdash.doors.bodies.jsontext import dump_json
from helmdash.doors.problems import CONTENT_TYPE
from helmdash.doors.wanted import Wanted, wanted_of

# Headers that say where the body ends, and whom it is for.
TELLING_HEADERS = frozenset(
    {b"content-length", b"transfer-encoding", b"host", b"upgrade", b"expect"}
)
# Of what came with a refused head, so much is searched for what its client reads: one read.
_SEARCHED_BYTES = 64 * 1024
_ACCEPT = re.compile(rb"\naccept:([^\r\n]*)", re.IGNORECASE)
_TWO_WAYS = "The end of the body is told in two ways."
# What goes with a refusal.
_MORE: dict[int, tuple[tuple[bytes, bytes], ...]] = {
    426: ((b"upgrade", b"HTTP/1.1"),),
    503: ((b"retry-after", b"1"),),
}


class HeadRefused(Exception):
    """The request goes no further; raised inside the parser to make it stop."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


def refusal_of(error: BaseException | None) -> tuple[int, str]:
    """What made the parser stop, as status and sentence: a refusal of ours, or bytes that are no
    request (400). error None: it stopped without one.

    Not the exception: who keeps it keeps itself, for it leads to all frames that it passed, and
    what they were given, until Python looks for circles.
    """
    if isinstance(error, HeadRefused):
        return error.status, error.sentence
    return 400, "This is no valid HTTP request."


def refusal_bytes(
    status: int,
    sentence: str,
    default_headers: Iterable[tuple[bytes, bytes]],
    *,
    came: bytes = b"",
) -> bytes:
    """The whole answer, after which the connection is closed: one line of text; a page or a problem
    for who says so in what `came` with the refusal."""
    found = _ACCEPT.search(came, 0, _SEARCHED_BYTES)
    headers, body = _told(status, sentence, wanted_of(found[1] if found else b""))
    lines = [
        STATUS_LINE[status],
        *(b"%s: %s\r\n" % header for header in default_headers),
        headers,
        b"content-length: %d\r\n" % len(body),
        *(b"%s: %s\r\n" % header for header in _MORE.get(status, ())),
        b"connection: close\r\n\r\n",
        body,
    ]
    return b"".join(lines)


# The sentences are a closed set, and a page takes a millisecond to draw.
@lru_cache(maxsize=64)
def _told(status: int, sentence: str, wanted: Wanted) -> tuple[bytes, bytes]:
    """The headers of what is said, and its body."""
    match wanted:
        case Wanted.PAGE:
            headers = b"content-type: text/html; charset=utf-8\r\n"
            headers += b"content-security-policy: %s\r\n" % PAGE_CSP
            return headers, page_about(status, sentence).encode()
        case Wanted.JSON:
            told = {"title": "The request cannot be read", "status": status, "detail": sentence}
            return b"content-type: %s\r\n" % CONTENT_TYPE.encode(), dump_json(told)
        case Wanted.ANYTHING:
            return b"content-type: text/plain; charset=utf-8\r\n", f"{sentence}\n".encode()


def announces_body(telling: Iterable[tuple[bytes, bytes]], version: str) -> bool:
    """Whether a request has a body; everybody between the client and us must find the same end of
    it, and the same host.

    The parser refuses most of what can be read in two ways; this is what it lets through. Raises
    HeadRefused (400).
    """
    length: bytes | None = None
    is_chunked = has_host = False
    for name, value in telling:
        if name == b"content-length":
            if length is not None:
                raise HeadRefused(400, _TWO_WAYS)
            length = value
        elif name == b"transfer-encoding":
            if is_chunked or version == "1.0" or value.lower() != b"chunked":
                raise HeadRefused(400, "The only Transfer-Encoding that is understood is chunked.")
            is_chunked = True
        elif name == b"host":
            if has_host:
                raise HeadRefused(400, "There is more than one Host.")
            has_host = True
    if is_chunked and length is not None:
        raise HeadRefused(400, _TWO_WAYS)
    return is_chunked or length not in (None, b"0")


def wants_websocket(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether its upgrade is one that HelmDash would have to speak."""
    return any(name == b"upgrade" and b"websocket" in value.lower() for name, value in headers)


def head_without_upgrade(
    method: bytes, url: bytes, version: str, headers: Iterable[tuple[bytes, bytes]]
) -> bytes:
    """The head as it would have come from a client that wants no upgrade.

    Raises HeadRefused (400) where a header goes over several lines.
    """
    lines = [b"%s %s HTTP/%s" % (method, url, version.encode())]
    for name, value in headers:
        if name == b"connection":
            value = b"close" if b"close" in value.lower() else b"keep-alive"
        if name not in (b"upgrade", b"http2-settings"):
            lines.append(b"%s: %s" % (name, value))
    if any(b"\r" in line or b"\n" in line for line in lines):
        raise HeadRefused(400, "A header goes over several lines.")
    return b"\r\n".join([*lines, b"", b""])
