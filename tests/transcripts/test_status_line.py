"""The status line against servers that answer in every way, and inputs of every kind."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from helmdash.transcripts import status_line
from helmdash.transcripts.archive import build_archive
from helmdash.transcripts.status_line import show_status_line

GIVEN = json.dumps({"session_id": "s", "context_window": {"context_window_size": 200_000}})
LINE = {"level": "critical", "text": "HelmDash: critical\x1b[2J"}


def answer(body: bytes, status: str = "200 OK") -> list[bytes]:
    return [b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n" % (status.encode(), len(body)), body]


@contextmanager
def server(pieces: list[bytes], *, seconds: float = 0) -> Iterator[tuple[str, list[bytes]]]:
    """Answers a request with pieces, and so long between them; gives its address and what came."""
    came: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            # Who has seen enough is gone before the last piece.
            with suppress(ConnectionError), listening.accept()[0] as asked:
                request = b""
                while not request.endswith(b"}"):
                    request += asked.recv(65_536)
                came.append(request)
                for piece in pieces:
                    asked.sendall(piece)
                    time.sleep(seconds)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", came


def shown(url: str, given: str = GIVEN, key: str = "k") -> str:
    out = io.StringIO()
    assert (
        show_status_line(io.StringIO(given), out, url=url, key=key, variables={"NO_COLOR": ""}) == 0
    )
    return out.getvalue()


@pytest.mark.parametrize(
    ("pieces", "line"),
    [
        (answer(json.dumps({"status_line": LINE}).encode()), "HelmDash: critical[2J"),
        (answer(b"{}", "401 Unauthorized"), "HelmDash: refused (401)"),
        (answer(b"{}", "302 Found"), "HelmDash: refused (302)"),
        (answer(b"[" * 100_000), "HelmDash: nothing to show"),
        (answer(b'{"status_line":null}'), "HelmDash: nothing to show"),
        (answer(b"\xff\xfe"), "HelmDash: nothing to show"),
        ([b"nothing of the kind\r\n\r\n"], "HelmDash: no answer"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"], "HelmDash: nothing to show"),
        ([], "HelmDash: no answer"),
    ],
)
def test_whatever_a_server_answers_is_one_line(pieces: list[bytes], line: str) -> None:
    with server(pieces) as (url, _):
        assert shown(url) == f"{line}\n"


def test_a_server_that_answers_drop_by_drop_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status_line, "_LIMIT_SECONDS", 0.3)
    drops = [bytes([each]) for each in b"HTTP/1.1 200 OK\r\n" * 50]

    with server(drops, seconds=0.02) as (url, _):
        assert shown(url) == "HelmDash: no answer\n"


@pytest.mark.parametrize(
    "given",
    [
        {"session_id": "s", "model": {"id": "m"}},
        {"session_id": "s", "context_window": None},
        {"session_id": "s", "context_window": {"context_window_size": None}},
    ],
)
def test_a_client_that_tells_no_window_is_shown_its_light(given: dict[str, object]) -> None:
    with server(answer(json.dumps({"status_line": LINE}).encode())) as (url, came):
        assert shown(url, json.dumps(given)).startswith("HelmDash: critical")
    assert b'"context_window": {' in came[0]


@pytest.mark.parametrize("given", ["", "[]", "null", "{", '{"session_id": "s"}', "x" * 9_999])
@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "ftp://x", "", "http://[", "http://a b/"])
def test_an_agent_sees_no_fault_of_ours(given: str, url: str) -> None:
    line = shown(url, given, key="k\u2603\n")
    assert line.startswith("HelmDash: no")
    assert line.count("\n") == 1


def test_the_light_is_shown_on_a_system_that_knows_no_such_character(tmp_path: Path) -> None:
    archive = tmp_path / "helmdash.pyz"
    archive.write_bytes(build_archive())
    done = subprocess.run(
        [sys.executable, str(archive), "statusline", "--url", "http://127.0.0.1:9"],
        input=b'{"session_id":"\xff"}',
        env={"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert done.stdout.decode().endswith("\u25cf\x1b[0m HelmDash: no answer\n")
    assert done.stderr == b""
