"""PostgreSQL is lost in the middle of what it is asked or told: nothing is half stored, and whoever
stores knows that it is the database's fault and tries again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import pytest
from django.db import OperationalError, connection

from helmdash.operations.recorder import group_commit
from helmdash.records.models import Call, Conversation
from helmdash.records.statements import direct
from helmdash.records.statements.direct import is_postgres
from tests.recording.support import make_ruled_project, prompt, record, storing
from tests.support.postgres import reach

pytestmark = [
    pytest.mark.skipif(not is_postgres(), reason="SQLite is a file"),
    pytest.mark.django_db(transaction=True),
]


@dataclass(slots=True)
class Line:
    """Between a client and its server. It breaks behind so many bytes of the server's."""

    left: float = float("inf")
    passed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, size: int) -> int:
        with self.lock:
            taken = int(min(size, self.left))
            self.left -= taken
            self.passed += taken
            return taken


@contextmanager
def line_to_database() -> Iterator[Line]:
    """This thread's connections lead by the line."""
    connection.ensure_connection()
    info, line, settings = connection.connection.info, Line(), connection.settings_dict
    host, port = settings["HOST"], settings["PORT"]
    server = (info.host, info.port)
    connection.close()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, server, line), daemon=True)
        thread.start()
        settings.update(HOST="127.0.0.1", PORT=str(listener.getsockname()[1]))
        try:
            yield line
        finally:
            settings.update(HOST=host, PORT=port)
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def _serve(listener: socket.socket, server: tuple[str, int], line: Line) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_pass_on, args=(client, server, line), daemon=True).start()


def _pass_on(client: socket.socket, server: tuple[str, int], line: Line) -> None:
    behind = reach(server)

    def ask() -> None:
        with suppress(OSError):
            while found := client.recv(65_536):
                behind.sendall(found)
            behind.shutdown(socket.SHUT_WR)

    with client, behind:
        threading.Thread(target=ask, daemon=True).start()
        with suppress(OSError):
            while found := behind.recv(65_536):
                taken = line.take(len(found))
                client.sendall(found[:taken])
                if taken < len(found) or line.left <= 0:
                    break
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


def test_a_connection_that_is_lost_is_the_databases_fault() -> None:
    """Wherever it breaks off in what the server says to one report."""
    project = make_ruled_project(payload="full")

    def work() -> None:
        with line_to_database() as line:
            record(project, prompt(5, id="first"))
            before = line.passed
            record(project, prompt(5, id="second"))
            told = line.passed - before
            for number, left in enumerate(range(0, told, told // 25)):
                line.left = left
                capture = prompt(5, id=f"{number}")
                assert_unavailable(partial(record, project, capture))
                line.left = float("inf")
                connection.close()
                record(project, capture)

    storing(work)

    names = [*Call.objects.values_list("name", flat=True)]
    assert len(names) == len({*names}) > 25
    assert Conversation.objects.get().generation == len(names)


def test_a_connection_that_is_lost_before_it_is_asked_anything_is_the_databases_fault() -> None:
    """A pooler takes connections while the database behind it is away."""
    project = make_ruled_project()

    def work() -> None:
        with line_to_database() as line:
            connection.connect()
            connects = line.passed
            connection.close()
            line.left = connects + 1
            assert_unavailable(lambda: record(project, prompt(5, id="lost")))

    storing(work)


def assert_unavailable(work: Callable[[], object]) -> None:
    with pytest.raises(Exception) as raised:
        work()
    assert group_commit.is_unavailable(raised.value)
    assert not connection.in_atomic_block


def test_a_process_that_is_ended_is_the_databases_fault() -> None:
    project = make_ruled_project()
    ending = "SELECT pg_terminate_backend(pg_backend_pid())"

    def work() -> None:
        record(project, prompt(5, id="first"))
        with pytest.raises(OperationalError):
            record(
                project,
                prompt(5, id="second"),
                also=lambda _: direct.tell_prepared(ending, []),
            )
        connection.close()
        record(project, prompt(5, id="second"))

    storing(work)

    assert sorted(Call.objects.values_list("name", flat=True)) == ["first", "second"]


def test_a_question_that_takes_too_long_leaves_a_connection_that_is_of_use() -> None:
    project = make_ruled_project()

    def work() -> None:
        record(project, prompt(5, id="first"))
        direct.tell("SET statement_timeout = '50ms'", [])
        with pytest.raises(OperationalError) as raised:
            record(
                project,
                prompt(5, id="second"),
                also=lambda _: direct.tell_prepared("SELECT pg_sleep(5)", []),
            )
        assert group_commit.is_unavailable(raised.value)
        record(project, prompt(5, id="second"))

    storing(work)

    assert sorted(Call.objects.values_list("name", flat=True)) == ["first", "second"]
