"""Reports on their way to a HelmDash that answers in every way a server may."""

from __future__ import annotations

import io
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from helmdash.transcripts.importing import CannotSend, Progress
from helmdash.transcripts.posting import ApiSender, make_opener
from helmdash.transcripts.telling import ProgressBar
from tests.support.certificates import issued_certificate

TAKEN: tuple[int, dict[str, str], object] = (
    200,
    {},
    {"stored": 1, "duplicates": 0, "rejected": [], "results": []},
)
KEY = "hd_secret"


class Server:
    """Answers with what is next in `answers`; remembers what came."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.answers: list[tuple[int, dict[str, str], object]] = []
        self.came: list[tuple[str, str | None, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                outer.came.append((self.path, self.headers["Authorization"], body))
                status, headers, answer = outer.answers.pop(0)
                content = json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_port}"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="module")
def _server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def server(_server: Server) -> Server:
    _server.answers.clear()
    _server.came.clear()
    return _server


def test_a_batch_is_sent_with_the_key_and_its_answer_is_read(server: Server) -> None:
    fault = {"index": 1, "errors": [{"field": "started_at", "message": "is in the future"}]}
    old = {"index": 0, "errors": [{"field": "started_at", "message": "…"}], "is_too_old": True}
    answered = {"stored": 1, "duplicates": 2, "rejected": [old, fault], "results": []}
    server.answers = [(200, {}, answered)]

    stored = ApiSender(f"{server.url}/", KEY)([{"id": "a"}, {"id": "b"}])

    assert server.came == [
        ("/api/v1/calls/batch", f"Bearer {KEY}", {"calls": [{"id": "a"}, {"id": "b"}]})
    ]
    assert (stored.new, stored.known, stored.too_old) == (1, 2, 1)
    assert stored.rejected == {1: "started_at is in the future"}


def test_a_server_behind_a_companys_own_authority_is_trusted_under_every_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 3.13 on Python's own context refuses what `openssl req -x509` makes."""
    authority, public, private = issued_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(public, private)
    server = Server(tls)
    server.answers = [TAKEN]

    try:
        assert ApiSender(server.url, KEY)([{"id": "a"}]).new == 1
    finally:
        server.close()


def test_authorities_are_read_only_for_an_address_that_needs_them() -> None:
    """From 3.12 on urllib reads them for every opener, 20 ms of each line of the status line."""
    ready = [type(each) for each in make_opener().handlers if vars(each).get("_context")]  # type: ignore[attr-defined]

    assert ready == []


def test_it_waits_as_long_as_it_is_asked_to(server: Server) -> None:
    waits: list[float] = []
    server.answers = [(503, {"Retry-After": "7"}, {}), (429, {}, {}), TAKEN]

    assert ApiSender(server.url, KEY, wait=waits.append)([{}]).new == 1
    assert waits == [7.0, 2.0]


def test_a_wait_that_lasts_is_told_once_and_its_end(server: Server) -> None:
    """A bar stood still for a minute without a word; a watch, for as long as the server is away."""
    told: list[str] = []
    server.answers = [(503, {}, {"detail": "The database is away."})] * 4 + [TAKEN]
    sender = ApiSender(server.url, KEY, wait=lambda _: None, tell=told.append)

    assert sender([{}]).new == 1
    server.answers = [(503, {}, {}), TAKEN]
    assert sender([{}]).new == 1

    address = f"{server.url}/api/v1/calls/batch"
    assert told == [
        f"{address} answered 503: The database is away. Trying again …",
        "It answers again.",
    ]


def test_what_is_told_meanwhile_stands_above_the_bar() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    bar = ProgressBar(stream, moment=lambda: 1.0)
    bar.say("before")
    bar(Progress("claude", done_bytes=1, all_bytes=2, calls=7))
    bar.say("It waits.")

    before, bar_then, said, bar_now = filter(None, re.split("[\r\n]", stream.getvalue()))
    assert (before, said.rstrip()) == ("before", "It waits.")
    assert len(said) == len(bar_now) == len(bar_then)
    assert bar_now.endswith("50%  7 calls")


def test_a_batch_that_is_too_large_goes_in_halves(server: Server) -> None:
    fault = {"index": 0, "errors": [{"field": "model", "message": "is missing"}]}
    answered = {"stored": 0, "duplicates": 0, "rejected": [fault], "results": []}
    server.answers = [(413, {}, {}), TAKEN, (200, {}, answered)]

    stored = ApiSender(server.url, KEY)([{"id": "a"}, {"id": "b"}])

    assert [body["calls"] for _, _, body in server.came][1:] == [[{"id": "a"}], [{"id": "b"}]]
    assert (stored.new, stored.rejected) == (1, {1: "model is missing"})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, {}, {"detail": "This key was revoked."}), "answered 401: This key was revoked."),
        ((403, {}, {"title": "Not allowed"}), "answered 403: Not allowed."),
        ((500, {}, {}), "answered 500: Internal Server Error."),
        # A key is not carried along.
        ((302, {"Location": "http://127.0.0.1:9/"}, {}), "answered 302: Found."),
        ((200, {}, {"hello": "world"}), "did not answer as a HelmDash"),
        ((200, {}, [1]), "did not answer as a HelmDash"),
    ],
)
def test_what_cannot_be_mended_by_waiting_is_said_at_once(
    server: Server, answer: tuple[int, dict[str, str], object], said: str
) -> None:
    server.answers = [answer]

    with pytest.raises(CannotSend, match=said.replace(".", r"\.")) as found:
        ApiSender(server.url, KEY)([{}])

    assert KEY not in str(found.value)
    assert len(server.came) == 1


@pytest.mark.parametrize(
    "sent",
    [
        b'HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{"stor',
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"stor',
        b'HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"stor',
        b"HTTP/1.1 2",
        b"",
    ],
)
def test_an_answer_that_breaks_off_is_asked_for_again(server: Server, sent: bytes) -> None:
    """The server was killed while it answered; a watch goes on."""
    waits: list[float] = []
    server.answers = [TAKEN]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def break_off() -> None:
            taken, _ = listener.accept()
            with taken:
                taken.recv(65_536)
                taken.sendall(sent)

        thread = threading.Thread(target=break_off)
        thread.start()

        def find_it_started(seconds: float) -> None:
            waits.append(seconds)
            sender._address = f"{server.url}/api/v1/calls/batch"

        sender = ApiSender(f"http://127.0.0.1:{port}", KEY, wait=find_it_started)
        assert sender([{}]).new == 1
        thread.join()

    assert waits == [1.0]


def test_a_server_that_is_away_is_tried_again_and_then_given_up() -> None:
    waits: list[float] = []

    with pytest.raises(CannotSend, match=r"cannot be reached.*Given up after 6 tries"):
        ApiSender("http://127.0.0.1:9", KEY, wait=waits.append)([{}])

    assert waits == [1.0, 2.0, 5.0, 10.0, 30.0]


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("ftp://host", KEY, "--url wants an address"),
        ("localhost:8000", KEY, "--url wants an address"),
        ("http://", KEY, "--url wants an address"),
        ("http://localhost", "", "A key is missing"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_read(url: str, key: str, said: str) -> None:
    with pytest.raises(CannotSend, match=said):
        ApiSender(url, key)
