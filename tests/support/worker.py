"""A worker: a fork of the process that has collected the tests, which runs those it is given."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from socket import socket
from typing import Any

import pytest
from _pytest._io import TerminalWriter

from tests.support.telling import Listener, Reader, Told, send
from tests.support.warm import be_another_process


def work(session: pytest.Session, connection: socket, name: str) -> None:
    """Run what comes over the connection, and tell of it, until there is no more."""
    _be_a_worker(session.config, name)
    listener = Listener(session.config)
    session.config.pluginmanager.register(listener)
    # Warnings of the time before are told to each new plugin.
    listener.take(0)
    for place, following in _with_next(connection):
        item = session.items[place]
        nextitem = None if following is None else session.items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        send(connection, listener.take(place))


class _Terminal:
    """In place of the terminal, for who prints there whatever happens: pytest-timeout, the stacks
    of a test that takes too long. It goes to what that test has printed."""

    @property
    def _tw(self) -> TerminalWriter:
        return TerminalWriter(sys.stderr)


def _with_next(connection: socket) -> Iterator[tuple[int, int | None]]:
    """The places of the tests to run, each with that of the test that will follow it."""
    reader = Reader(connection)
    waiting = deque(_more(connection, reader))
    while waiting:
        place = waiting.popleft()
        if not waiting:
            # Before the last one runs: what it leaves set up depends on what follows.
            waiting.extend(_more(connection, reader))
        yield place, waiting[0] if waiting else None


def _more(connection: socket, reader: Reader) -> list[int]:
    send(connection, Told(None))
    found: list[int] = reader.next()
    return found


def _be_a_worker(config: Any, name: str) -> None:
    # Whoever asks does so by xdist's names: pytest-django for a database of each worker's own.
    os.environ["PYTEST_XDIST_WORKER"] = name
    config.workerinput = {"workerid": name}
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(_Terminal(), "terminalreporter")
    # What is captured would go into the one file that it shares with the others.
    capturing = config.pluginmanager.getplugin("capturemanager")
    capturing.stop_global_capturing()
    capturing.start_global_capturing()
    paths = config._tmp_path_factory
    paths._given_basetemp, paths._basetemp = paths.getbasetemp() / name, None
    be_another_process()
