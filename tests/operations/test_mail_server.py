"""What a mail server has to show before a mail is given to it."""

from __future__ import annotations

import smtplib
import socketserver
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.mail import EmailMessage, get_connection

from helmdash import notifier
from helmdash import settings as helmdash_settings
from helmdash.core.alerts.channels import ChannelKind, Mail, Target
from helmdash.operations.mail_server import SomeRefused
from tests.support.certificates import issued_certificate


class _Talk(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"220 mail.example\r\n")
        while line := self.rfile.readline():
            self.wfile.write(b"221 bye\r\n" if line[:4].lower() == b"quit" else b"250 ok\r\n")


class _Picky(socketserver.StreamRequestHandler):
    """Takes mails, but not for whom it does not know, and thinks over each for as long as it is
    told to."""

    server: _PickyServer

    def handle(self) -> None:
        self.wfile.write(b"220 mail.example\r\n")
        while line := self.rfile.readline():
            verb = line[:4].lower()
            if verb == b"rcpt" and b"<no" in line:
                self.wfile.write(b"550 5.1.1 no such user\r\n")
                continue
            if verb == b"data":
                self.wfile.write(b"354 go on\r\n")
                while self.rfile.readline() not in (b".\r\n", b""):
                    pass
                self.server.has_text.set()
                self.server.answers.wait(20)
            self.wfile.write(b"221 bye\r\n" if verb == b"quit" else b"250 ok\r\n")


class _Server(socketserver.ThreadingTCPServer):
    def handle_error(self, *_: object) -> None:
        """A client that does not trust it says so itself."""


class _PickyServer(_Server):
    """has_text: a mail's text is there; answers: it may say its word on it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Picky)
        self.has_text, self.answers = threading.Event(), threading.Event()
        self.answers.set()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


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


@pytest.fixture
def picky() -> Iterator[_PickyServer]:
    with _PickyServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.answers.set()
        server.shutdown()
        thread.join()


def _send(port: int, *to: str) -> None:
    server = get_connection(
        helmdash_settings.EMAIL_BACKEND, host="127.0.0.1", port=port, timeout=0.2
    )
    EmailMessage("A subject", "A text.", "us@example.org", to, connection=server).send()


def _open(port: int) -> None:
    server = get_connection(
        helmdash_settings.EMAIL_BACKEND, host="127.0.0.1", port=port, use_ssl=True, use_tls=False
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


def test_a_server_that_thinks_a_mail_over_is_waited_for(picky: _PickyServer) -> None:
    """Whoever leaves before its answer sends the mail again, though it was taken."""
    picky.answers.clear()
    answering = threading.Timer(0.5, picky.answers.set)
    answering.start()

    _send(picky.port, "ann@example.org")

    answering.join()


@pytest.mark.parametrize(
    ("to", "error", "told"),
    [
        (("ann", "no-one"), SomeRefused, "the mail server refused 1 of 2 addresses (550)"),
        # It reached nobody.
        (("no-one", "nobody"), smtplib.SMTPRecipientsRefused, ""),
    ],
)
def test_who_does_not_get_a_mail_is_told(
    picky: _PickyServer, to: tuple[str, ...], error: type[Exception], told: str
) -> None:
    with pytest.raises(error) as raised:
        _send(picky.port, *(f"{name}@example.org" for name in to))

    if told:
        assert str(raised.value) == told


CHANNEL = Target(name="ops", kind=ChannelKind.EMAIL, address="", secret="", allow_private=False)


@pytest.fixture
def mailing(picky: _PickyServer, settings: Any) -> _PickyServer:
    """The server that mails go to."""
    settings.EMAIL_BACKEND = helmdash_settings.EMAIL_BACKEND
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", picky.port
    return picky


def test_a_channel_says_how_many_of_its_addresses_were_refused(mailing: _PickyServer) -> None:
    """It is sent, and must not come twice to the others; the addresses themselves are secret."""
    mail = Mail(key="k", to=("ann@example.org", "no-one@example.org"), subject="A", text="B")

    with notifier.opened() as send:
        outcome = send(CHANNEL, mail).result(timeout=10)

    assert (outcome.is_sent, outcome.told) == (
        True,
        "the mail server refused 1 of 2 addresses (550)",
    )


def test_a_server_that_stops_does_not_wait_for_the_word_on_a_mail(mailing: _PickyServer) -> None:
    mailing.answers.clear()
    mail = Mail(key="k", to=("ann@example.org",), subject="A", text="B")

    with notifier.opened() as send:
        sending = send(CHANNEL, mail)
        assert mailing.has_text.wait(10)

    assert not mailing.answers.is_set()
    assert not sending.done() or sending.cancelled()
