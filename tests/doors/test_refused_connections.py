"""What a refused connection held goes with it: strangers open hundreds of them in a second."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from helmdash.doors.http.protocol import BoundedProtocol

HOST = b" HTTP/1.1\r\nHost: localhost\r\n"
PIECE = b"a" * 200_000
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


class Wire(asyncio.Transport):
    """One end of a connection that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.1", 1) if name in ("peername", "sockname") else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def resume_reading(self) -> None: ...


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Waits for the whole body, as most do."""
    while (await receive()).get("more_body"):
        pass


@pytest.mark.parametrize(
    ("status", "pieces"),
    [
        (431, (b"GET /" + HOST + b"X: ", PIECE, PIECE)),
        (431, (b"GET /" + HOST + b"X-Many: a\r\n" * 20_000, PIECE)),
        (431, (b"POST /" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", PIECE, PIECE)),
        (414, (b"GET /" + PIECE, PIECE)),
        (426, (b"GET /" + HOST + UPGRADE, PIECE)),
        (400, (b"\x16\x03\x01" + PIECE, PIECE)),
    ],
)
def test_nothing_of_a_refused_connection_waits_for_a_search_for_circles(
    status: int, pieces: tuple[bytes, ...]
) -> None:
    async def bother() -> tuple[bytes, weakref.ref[BoundedProtocol]]:
        config = Config(app=application, http=BoundedProtocol)
        config.load()
        protocol = BoundedProtocol(
            config=config,
            server_state=ServerState(),
            app_state={},
            _loop=asyncio.get_running_loop(),
        )
        wire = Wire()
        protocol.connection_made(wire)
        for piece in pieces:
            protocol.data_received(piece)
            await asyncio.sleep(0)
        # Before the connection is closed: it lingers for seconds, so that its answer is read.
        assert vars(protocol)["parser"] is None
        wire.close()
        protocol.connection_lost(None)
        await asyncio.sleep(0)
        return wire.sent, weakref.ref(protocol)

    gc.collect()
    gc.disable()
    try:
        sent, protocol = asyncio.run(bother())
        assert sent.startswith(b"HTTP/1.1 %d " % status)
        assert protocol() is None
    finally:
        gc.enable()
