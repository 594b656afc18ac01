"""A server process's end of the host's writer process: it hands groups over and hears of them.

Where there is no writer process yet, or none any more, the recorder's own thread stores as if there
were never one. So nobody waits for it to start, and a call needs it for nothing but speed.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Iterator, Sequence
from io import BufferedReader

from helmdash.operations.recorder import wire
from helmdash.operations.recorder.files.units import Outcome, Unit
from helmdash.operations.recorder.group_commit import UnavailableElsewhere
from helmdash.operations.recorder.wire import Group
from helmdash.operations.recording import truncation

logger = logging.getLogger(__name__)

# A connection is made at once, or there is nobody who holds the socket.
_CONNECT_SECONDS = 0.1
_AGAIN_SECONDS = 0.5
# Nobody is there, or what is said cannot be understood.
_LOST = (OSError, ValueError, TypeError, LookupError)


class LinkLost(Exception):
    """The writer process has ended; what became of the group is not known."""


class WriterLink:
    """The connection of one recorder. Used by its thread, or by its event loop while that has
    reserved it (Intake.reserve); `is_up` may be read by anybody."""

    def __init__(self, path: str, *, after_calls: int) -> None:
        """path: of the socket. after_calls: so many are stored here before it is asked for."""
        self._path = path
        self._wanted_in = after_calls
        self._socket: socket.socket | None = None
        self._stream: BufferedReader | None = None
        self._tried_at = 0.0
        self._was_tried = False
        self.is_up = False
        """The writer process stores."""

    def is_ready(self) -> bool:
        """Whether groups can be handed over now. Asks for the writer process where there is
        none, and does not wait for it."""
        if self.is_up:
            return True
        if self._wanted_in > 0:
            return False
        try:
            self.is_up = self._is_greeted()
        except OSError as error:
            logger.debug("the writer process does not answer: %s", error)
            self.close()
        return self.is_up

    def look(self) -> None:
        """With nothing under way: let go of a writer process that has ended, and see whether the
        next one answers, where one was asked for before."""
        if self.is_up and self._has_ended():
            logger.warning("the writer process has ended while it had nothing to store")
            self.close()
        if self._was_tried:
            self.is_ready()

    def note(self, calls: int) -> None:
        """So many calls were stored here."""
        self._wanted_in -= calls

    def store(self, group: Group) -> Iterator[list[Outcome]]:
        """Have units stored; gives outcomes as soon as they are final.

        Raises LinkLost, and UnavailableElsewhere where the database is: what was not given back is
        not stored then.
        """
        self.send(group)
        yield from self.hear(group.units)

    def send(self, group: Group) -> None:
        """Ask for units to be stored. Raises LinkLost."""
        assert self._socket is not None
        try:
            wire.send_frame(self._socket, wire.GROUP, *wire.group_parts(group))
        except _LOST as error:
            self.close()
            raise LinkLost(repr(error)) from error

    def send_at_once(self, group: Group) -> None:
        """The same without waiting: the link is lost where the connection does not hold it all, as
        that of a writer process that is stopped. What was sent in part is never stored."""
        assert self._socket is not None
        try:
            frame = wire.frame(wire.GROUP, *wire.group_parts(group))
            if self._socket.send(frame, socket.MSG_DONTWAIT) < len(frame):
                raise BlockingIOError("the writer process does not read what it is sent")
        except _LOST as error:
            self.close()
            raise LinkLost(repr(error)) from error

    def hear(self, units: Sequence[Unit]) -> Iterator[list[Outcome]]:
        """Wait for what became of the units that were sent. Raises as `store` does."""
        assert self._stream is not None
        try:
            while True:
                kind, data = wire.read_frame(self._stream)
                if kind == wire.UNAVAILABLE:
                    raise UnavailableElsewhere(data.decode())
                outcomes, bands = wire.read_outcomes(data, units)
                truncation.take_over(bands)
                yield outcomes
                if kind == wire.LAST:
                    return
        except _LOST as error:
            self.close()
            raise LinkLost(repr(error)) from error

    def fileno(self) -> int:
        """Of the connection, to see when there is something to hear."""
        assert self._socket is not None
        return self._socket.fileno()

    def close(self) -> None:
        """Let go of it."""
        self.is_up = False
        for each in (self._stream, self._socket):
            if each is not None:
                with contextlib.suppress(OSError):
                    each.close()
        self._stream = self._socket = None

    def _has_ended(self) -> bool:
        assert self._socket is not None
        try:
            return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _is_greeted(self) -> bool:
        """Whether it has said what it is: it does when it is ready. Raises OSError."""
        if self._socket is None:
            if time.monotonic() - self._tried_at < _AGAIN_SECONDS:
                return False
            self._tried_at, self._was_tried = time.monotonic(), True
            self._connect()
        assert self._socket is not None
        try:
            found = self._socket.recv(len(wire.HELLO), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        if found != wire.HELLO:
            raise ConnectionError("it is of another release" if found else "it has ended")
        return True

    def _connect(self) -> None:
        self._socket = own = socket.socket(socket.AF_UNIX)
        own.settimeout(_CONNECT_SECONDS)
        own.connect(self._path)
        # With a time to wait, Python would wait for the greeting as well.
        own.settimeout(None)
        self._stream = own.makefile("rb")
