"""Handing the record of a call over, once.

By a plain function, before the client's last byte leaves; nothing here waits for it. So a client
that has its whole reply has a record, and a database that is away costs no client anything.
"""

from __future__ import annotations

import logging

from helmdash.core.calls.capture import Capture
from helmdash.gateway.forwarding.capture.bare_capture import bare_capture_of
from helmdash.gateway.forwarding.capture.capturing import capture_of
from helmdash.gateway.local_models import LocalModels
from helmdash.gateway.refusals import busy
from helmdash.gateway.remediation.remediator import Remediator
from helmdash.gateway.reply_keepers import ReplyKeepers
from helmdash.gateway.requests.exchange import Exchange
from helmdash.operations.recorder import Recorder

log = logging.getLogger(__name__)

_TAKES_NOTHING = (
    "HelmDash cannot record calls just now, so no model was asked: neither its disk nor its "
    "database takes them."
)
_NOT_KEPT = (
    "The model has answered, and HelmDash could not record the call: neither its disk nor its "
    "database takes it."
)


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
        """Note that a call is under way: lost with the process, it is counted as lost.

        Raises Refusal where nothing that it will tell could be kept: no model is asked then.
        """
        if not self._recorder.takes_calls:
            raise busy(_TAKES_NOTHING)
        self._recorder.begin(exchange.call_id, exchange.key_context.caller.project.id)

    def settle(self, exchange: Exchange) -> None:
        """Hand the record over, once. Never raises: recording must not break the call."""
        if exchange.is_settled:
            return
        exchange.is_settled = True
        capture = self._capture(exchange)
        caller = exchange.key_context.caller
        exchange.unkept = self._recorder.submit(
            project=caller.project, caller=caller.name, capture=capture, at=exchange.started_at
        )
        try:
            self._keepers.note(caller.project.id, capture)
            self._local.note(exchange, capture)
            self._remediator.note(exchange, capture)
        except Exception:
            log.exception("what a call told could not be noted for the next one")

    async def secure(self, exchange: Exchange) -> None:
        """Wait until a record that no file took is stored: what is answered well is recorded.

        Raises Refusal where the database does not take it either.
        """
        unkept, exchange.unkept = exchange.unkept, None
        if unkept is not None and not await self._recorder.is_kept(unkept):
            raise busy(_NOT_KEPT)

    def _capture(self, exchange: Exchange) -> Capture:
        """All that the call told; where that cannot be put together, what is known for certain."""
        try:
            return capture_of(exchange)
        except Exception:
            log.exception("what a call told could not be put together")
            return bare_capture_of(exchange)
