"""What a service manager, such as systemd, hears of a server: that it sets up, and that it answers.

By sd_notify(3): words in a datagram to the socket that NOTIFY_SOCKET names. Where nobody asks for
it, nothing happens.
"""

from __future__ import annotations

import http.client
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from helmdash import conf
from helmdash.cli.base_url import base_url, local_host

log = logging.getLogger(__name__)

_VARIABLE: Final = "NOTIFY_SOCKET"
_LOOK_SECONDS: Final = 0.05
# A start on a machine under load answers late, and is asked again then.
_ANSWER_SECONDS: Final = 2.0


class ServiceManager:
    """The one that asked this process to tell, or none.

    It is told by this process alone: what it starts does not find the socket (systemd takes the
    word of the first process of a unit, unless the unit says otherwise).
    """

    def __init__(self) -> None:
        self._address = os.environ.pop(_VARIABLE, "")

    def says(self, status: str) -> None:
        """Have `systemctl status` show what the server is at, in one line."""
        self._tell(f"STATUS={status}")

    @contextmanager
    def told_when_ready(self, env: conf.Env) -> Iterator[None]:
        """A block in which it hears that the server answers, as soon as /healthz does."""
        if not self._address:
            yield
            return
        is_over = threading.Event()
        looking = threading.Thread(
            target=self._look, args=(env, is_over), name="service-manager", daemon=True
        )
        looking.start()
        try:
            yield
        finally:
            is_over.set()

    def _look(self, env: conf.Env, is_over: threading.Event) -> None:
        while not is_over.wait(_LOOK_SECONDS):
            if _answers(env):
                self._tell(f"READY=1\nSTATUS=Answers at {base_url(env)}")
                return

    def _tell(self, words: str) -> None:
        if not self._address:
            return
        # An address that begins with @ is one of Linux's abstract names.
        address = self._address.replace("@", "\0", 1) if self._address[0] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.sendto(words.encode(), address)
        except OSError as error:
            log.warning("the service manager cannot be told (%s): %s", _VARIABLE, error)


def _answers(env: conf.Env) -> bool:
    with suppress(OSError, http.client.HTTPException):
        server = http.client.HTTPConnection(local_host(env.host), env.port, timeout=_ANSWER_SECONDS)
        try:
            server.request("GET", "/healthz")
            return server.getresponse().status == 200
        finally:
            server.close()
    return False
