"""What a worker tells of a test: its reports and warnings, as few bytes as say it.

Two of three reports say that nothing happened while a test was set up or torn down. Nobody looks at
these, so they are not told. Most others say that a test passed and how long it took.
"""

from __future__ import annotations

import pickle
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from socket import socket
from typing import Any

import pytest

# Longer ones may be among the slowest that `--durations` shows.
_SHORT_SECONDS = 0.1
_LENGTH = struct.Struct("!I")


@dataclass(slots=True)
class Told:
    """Of one test, or of a worker's end."""

    place: int | None
    """Of the test in the session; None: the worker asks for more."""
    passed: tuple[float, float, float] | None = None
    """Duration, start and stop of the test itself, where this is all there is to say of it."""
    reports: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)


class Listener:
    """A worker's plugin that gathers what is told of a test until it has run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._told = Told(None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report, unless it is dull."""
        if self._told.reports and report.when == "call":
            # Only here it is known that one of its subtests has failed, and so the test.
            self._config.hook.pytest_report_teststatus(report=report, config=self._config)
        plain = type(report) is pytest.TestReport and report.passed
        plain = plain and not report.sections and not report.user_properties
        if plain and report.when == "call" and self._told.passed is None:
            self._told.passed = report.duration, report.start, report.stop
        elif not plain or report.duration >= _SHORT_SECONDS:
            write = self._config.hook.pytest_report_to_serializable
            self._told.reports.append(write(config=self._config, report=report))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Keep a warning."""
        said = str(warning_message.message), warning_message.category.__name__
        where = warning_message.filename, warning_message.lineno
        told = {"when": when, "nodeid": nodeid, "location": location}
        self._told.warnings.append({"said": said, "where": where, **told})

    def take(self, place: int) -> Told:
        """All that has been told since the last time, as of the test there."""
        told, self._told = self._told, Told(None)
        told.place = place
        return told


def report(told: Told, session: pytest.Session) -> None:
    """Have all plugins of this process hear of it, as if the test had run here."""
    assert told.place is not None
    hook, item = session.config.hook, session.items[told.place]
    for each in told.warnings:
        hook.pytest_warning_recorded.call_historic(kwargs=_warning(**each))
    for data in told.reports:
        read = hook.pytest_report_from_serializable(config=session.config, data=data)
        hook.pytest_runtest_logreport(report=read)
    if told.passed is not None:
        hook.pytest_runtest_logreport(report=_passed(item, *told.passed))
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _warning(said: tuple[str, str], where: tuple[str, int], **others: object) -> dict[str, object]:
    # Of a category by that name: the real one may be in a module that only the worker has loaded.
    text, name = said
    category = type(name, (Warning,), {})
    return {"warning_message": warnings.WarningMessage(category(text), category, *where), **others}


def _passed(item: pytest.Item, duration: float, start: float, stop: float) -> pytest.TestReport:
    return pytest.TestReport(
        item.nodeid,
        item.location,
        dict.fromkeys(item.keywords, 1),
        "passed",
        None,
        "call",
        duration=duration,
        start=start,
        stop=stop,
    )


def send(connection: socket, value: object) -> None:
    """Send a value to the other end's `Reader`."""
    data = pickle.dumps(value)
    connection.sendall(_LENGTH.pack(len(data)) + data)


class Reader:
    """Values as they come in on a connection, a part at a time."""

    def __init__(self, connection: socket) -> None:
        self._connection = connection
        self._buffer = bytearray()

    def wait(self) -> Iterator[Any]:
        """Wait for some bytes; gives the values that they complete. Raises EOFError at the end."""
        try:
            data = self._connection.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            raise EOFError
        self._buffer += data
        return self._complete()

    def next(self) -> Any:
        """Wait for a value. Only where no other can follow before it is answered."""
        while True:
            for value in self.wait():
                return value

    def _complete(self) -> Iterator[Any]:
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            # Its sender is a fork of this process, or what this one is a fork of.
            value = pickle.loads(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield value
