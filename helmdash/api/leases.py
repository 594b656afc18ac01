"""Requests that are being carried out keep their lease (helmdash.operations.idempotency)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from helmdash.operations.database.clock import shared_now
from helmdash.operations.database.sqlite_file import thread_connection
from helmdash.operations.idempotency import Claim, renew

log = logging.getLogger(__name__)

# Twice in a lease it may fail.
_RENEW_EVERY_S = 20.0


class Leases:
    """Renews the leases of this process, by a thread that lives while there are some."""

    def __init__(self, every_s: float = _RENEW_EVERY_S) -> None:
        self._every_s = every_s
        self._held: set[Claim] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def holding(self, claim: Claim) -> Iterator[None]:
        """A block in which the lease is renewed every 20 s, so that no repeat is carried out
        meanwhile.

        Not inside a transaction: no other connection sees the lease yet, and on SQLite whoever
        wants to renew it keeps every writer waiting until the transaction has ended.
        """
        if connection.in_atomic_block:
            yield
            return
        with self._lock:
            self._held.add(claim)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._held.discard(claim)

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            pause.wait(self._every_s)
            with self._lock:
                held = tuple(self._held)
                if not held:
                    self._thread = None
                    return
            try:
                with thread_connection():
                    renew(held, now=shared_now())
            except Exception:
                log.warning("leases of requests under way could not be renewed", exc_info=True)
