"""Handing the record of a call over, once.

By a plain function, before the client's last byte leaves; nothing here waits for it. So a client
that has its whole reply has a record, and a database that is away costs no client anything.
"""

from __future__ import annotations

import logging

from helmdash.core.calls.capture import Capture
from helmdash.gateway.exchange import Exchange
from helmdash.gateway.forwarding.capture.bare_capture import bare_capture_of
from helmdash.gateway.forwarding.capture.capturing import capture_of
from helmdash.gateway.local_models import LocalModels
from helmdash.gateway.remediation.remediator import Remediator
from helmdash.gateway.reply_keepers import ReplyKeepers
from helmdash.operations.recorder import Recorder

log = logging.getLogger(__name__)


class CallRecording:
    """The way of calls to the recorder."""

    def __init__(
        self, recorder: Recorder, local: LocalModels, remediator: Remediator, keepers: ReplyKeepers
    ) -> None:
        self._recorder = recorder
        self._keepers = keepers
        self._local = local
        self._remediator = remediator

    def open(self, exchange: Exchange) -> None:
        """Note that a call is under way: lost with the process, it is counted as lost."""
        self._recorder.begin(exchange.call_id, exchange.key_context.caller.project.id)

    def settle(self, exchange: Exchange) -> None:
        """Hand the record over, once. Never raises: recording must not break the call."""
        if exchange.is_settled:
            return
        exchange.is_settled = True
        capture = self._capture(exchange)
        caller = exchange.key_context.caller
        self._recorder.submit(
            project=caller.project, caller=caller.name, capture=capture, at=exchange.started_at
        )
        try:
            self._keepers.note(caller.project.id, capture)
            self._local.note(exchange, capture)
            self._remediator.note(exchange, capture)
        except Exception:
            log.exception("what a call told could not be noted for the next one")

    def _capture(self, exchange: Exchange) -> Capture:
        """All that the call told; where that cannot be put together, what is known for certain."""
        try:
            return capture_of(exchange)
        except Exception:
            log.exception("what a call told could not be put together")
            return bare_capture_of(exchange)
