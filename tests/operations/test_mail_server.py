"""What a mail server has to show before a mail is given to it."""

from __future__ import annotations

import socketserver
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.mail import get_connection

from helmdash import settings
from tests.support.certificates import issued_certificate


class _Talk(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"220 mail.example\r\n")
        while line := self.rfile.readline():
            self.wfile.write(b"221 bye\r\n" if line[:4].lower() == b"quit" else b"250 ok\r\n")


class _Server(socketserver.ThreadingTCPServer):
    def handle_error(self, *_: object) -> None:
        """A client that does not trust it says so itself."""


@pytest.fixture
def authority_and_port(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A mail server with TLS from the start, and the authority of its certificate."""
    authority, public, private = issued_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(public, private)
    with _Server(("127.0.0.1", 0), _Talk) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield authority, server.server_address[1]
        server.shutdown()
        thread.join()


def _open(port: int) -> None:
    server = get_connection(
        settings.EMAIL_BACKEND, host="127.0.0.1", port=port, use_ssl=True, use_tls=False
    )
    assert server.open()
    server.close()


def test_a_companys_own_authority_is_trusted_under_every_python(
    authority_and_port: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 3.13 on Python's own context refuses what `openssl req -x509` makes."""
    authority, port = authority_and_port
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))

    _open(port)


def test_an_authority_that_nobody_knows_is_not_trusted(
    authority_and_port: tuple[Path, int],
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        _open(authority_and_port[1])
