"""What the two processes say to each other: one ASGI request for each connection, in frames.

A frame is one letter, a length of four bytes, and so many bytes. Both ends are this very code, of
one installation, on one machine, over a socket that only its owner can open.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import orjson

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Where a process's own forwarder stands in the scope of a request; None in the worker.
FORWARDER_KEY = "helmdash.heavy"

# From the client's process: the scope, its body in pieces, the end of it, and "the server stops".
SCOPE, PIECE, WHOLE, STOP = b"H", b"b", b"W", b"X"
# From the worker: the turn is over, the response begins, goes on, and ends.
TURN_OVER, BEGIN, CHUNK, END = b"P", b"S", b"B", b"E"

_HEAD = struct.Struct(">cI")
# A write of 8 MiB at once would be copied whole into the transport's buffer.
_PIECE_BYTES = 256 * 1024
# What of a scope is plain data; everything else in it belongs to one process.
_WORDS = ("type", "http_version", "method", "scheme", "path", "root_path")
_BYTES = ("raw_path", "query_string")
_PLACES = ("client", "server")


async def read_frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The next frame. Raises IncompleteReadError when the other end is gone."""
    kind, size = _HEAD.unpack(await reader.readexactly(_HEAD.size))
    return kind, await reader.readexactly(size) if size else b""


def write_frame(writer: asyncio.StreamWriter, kind: bytes, data: bytes = b"") -> None:
    """Send a frame; `drain` waits until there is room for more."""
    writer.write(_HEAD.pack(kind, len(data)))
    if data:
        writer.write(data)


async def write_request(writer: asyncio.StreamWriter, scope: Scope, body: bytes) -> None:
    """Send the scope and the whole body of a request as frames."""
    write_frame(writer, SCOPE, orjson.dumps(_plain(scope)))
    for start in range(0, len(body), _PIECE_BYTES):
        write_frame(writer, PIECE, body[start : start + _PIECE_BYTES])
        await writer.drain()
    write_frame(writer, WHOLE)
    await writer.drain()


async def read_request(reader: asyncio.StreamReader) -> tuple[Scope, bytes]:
    """A whole request, as `write_request` sends it."""
    _, told = await read_frame(reader)
    pieces: list[bytes] = []
    while True:
        kind, data = await read_frame(reader)
        if kind == WHOLE:
            return _scope(orjson.loads(told)), b"".join(pieces)
        pieces.append(data)


def headers_out(headers: Any) -> list[list[str]]:
    """Headers as JSON can hold them."""
    return [[bytes(n).decode("latin-1"), bytes(v).decode("latin-1")] for n, v in headers]


def headers_in(told: Any) -> list[tuple[bytes, bytes]]:
    """Undo `headers_out`: pairs of bytes, as ASGI has them."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told]


def _plain(scope: Scope) -> dict[str, Any]:
    plain: dict[str, Any] = {name: scope[name] for name in _WORDS if name in scope}
    plain |= {n: scope[n].decode("latin-1") for n in _BYTES if scope.get(n) is not None}
    plain["headers"] = headers_out(scope["headers"])
    plain |= {n: list(scope[n]) for n in _PLACES if scope.get(n)}
    return plain


def _scope(plain: dict[str, Any]) -> Scope:
    whole = {"asgi": {"version": "3.0", "spec_version": "2.3"}, "extensions": {}, **plain}
    for name in _BYTES:
        if name in whole:
            whole[name] = whole[name].encode("latin-1")
    for name in _PLACES:
        if name in whole:
            whole[name] = tuple(whole[name])
    whole["headers"] = headers_in(whole["headers"])
    return whole
