"""A service manager that asks for it (sd_notify(3)) hears when the server answers."""

from __future__ import annotations

import secrets
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.processes import children
from tests.support.server import serve

_PATIENCE_SECONDS = 60


@contextmanager
def listening(kind: str) -> Iterator[tuple[str, socket.socket]]:
    """A socket as systemd holds it, and how NOTIFY_SOCKET names it."""
    with ExitStack() as stack:
        manager = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        manager.settimeout(_PATIENCE_SECONDS)
        if kind == "abstract":
            name = "@helmdash-" + secrets.token_hex(8)
            manager.bind("\0" + name[1:])
        else:
            # Below /tmp itself: an address has room for a hundred characters.
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hd-"))
            name = f"{folder}/notify"
            manager.bind(name)
        yield name, manager


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.parametrize(("kind", "workers"), [("abstract", "1"), ("path", "2")])
def test_a_service_manager_hears_that_the_server_sets_up_and_that_it_answers(
    tmp_path: Path, kind: str, workers: str
) -> None:
    with listening(kind) as (name, manager):
        served = serve(tmp_path, NOTIFY_SOCKET=name, HELMDASH_WORKERS=workers)
        try:
            told = [manager.recv(1000).decode()]
            while "READY=1" not in told[-1]:
                told.append(manager.recv(1000).decode())
            answer = httpx.get(f"{served.base_url}/healthz", timeout=30)
            handed_on = [
                pid
                for pid in children(served.process.pid)
                if b"NOTIFY_SOCKET" in Path(f"/proc/{pid}/environ").read_bytes()
            ]
        finally:
            served.close()

    assert answer.status_code == 200
    assert told == [
        "STATUS=Setting up: tables, budgets, keys",
        f"READY=1\nSTATUS=Answers at {served.base_url}",
    ]
    assert handed_on == []


@pytest.mark.slow
@pytest.mark.one_database
def test_a_service_manager_that_is_gone_keeps_no_server_from_serving(tmp_path: Path) -> None:
    served = serve(tmp_path, NOTIFY_SOCKET=str(tmp_path / "none"))
    try:
        assert httpx.get(f"{served.base_url}/healthz", timeout=30).status_code == 200
        assert "the service manager cannot be told (NOTIFY_SOCKET)" in served.log
    finally:
        served.close()
