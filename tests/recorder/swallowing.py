"""A way to PostgreSQL that a test can cut, or let fall silent as a stopped machine does."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

_PIECE = 65536


@dataclass(slots=True)
class Way:
    """A port that leads to the server of `url`."""

    url: str
    port: int = field(init=False)
    _listener: socket.socket = field(init=False)
    _open: threading.Event = field(default_factory=threading.Event)
    _sockets: list[socket.socket] = field(default_factory=list)
    _is_cut: bool = False

    def __post_init__(self) -> None:
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def through(self) -> str:
        """The URL that leads through here."""
        parts = urlsplit(self.url)
        return f"postgres://{parts.username}@127.0.0.1:{self.port}{parts.path}"

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Connections stand, and nothing comes through them."""
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Connections break, and new ones do too."""
        self._is_cut = True
        self._break()
        try:
            yield
        finally:
            self._is_cut = False

    def close(self) -> None:
        self._open.set()
        self._listener.close()
        self._break()

    def _break(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._is_cut:
                    client.close()
                    continue
                server = self._connect()
                self._sockets += [client, server]
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _connect(self) -> socket.socket:
        parts = urlsplit(self.url)
        host = unquote(parts.netloc.rpartition("@")[2])
        if not host.startswith("/"):
            return socket.create_connection((parts.hostname or "", parts.port or 5432))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.5432")
        return server

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError), one, other:
            while data := one.recv(_PIECE):
                self._open.wait()
                other.sendall(data)
            other.shutdown(socket.SHUT_RDWR)
