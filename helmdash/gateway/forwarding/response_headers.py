"""The headers of ours that stand on every answer to a call."""

from __future__ import annotations

import re

from helmdash.gateway.forwarding.names_elsewhere import request_id_header
from helmdash.gateway.remediation_state import RemediationState
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.responder import Header

# Clients take headers of 8 KiB and more; what is beyond this stands in the record.
_NOTE_BYTES = 1_000
_PLAIN = re.compile(rb"[\x00-\x1f\x7f]+")


def own_headers(exchange: Exchange, *, level: str = "unknown") -> list[Header]:
    """The call, its level as far as it is known, what we took, and what remediation did."""
    headers = [
        (b"x-helmdash-call-id", exchange.call_id.encode()),
        (b"x-helmdash-level", level.encode()),
        (b"x-helmdash-overhead-ms", f"{exchange.own_ms:.2f}".encode()),
    ]
    warning = exchange.notes.get("budget_warning")
    if warning:
        headers.append((b"x-helmdash-budget-warning", str(warning).encode("latin-1", "replace")))
    notes = exchange.notes.get("notes")
    if isinstance(notes, list):
        said = " ".join(notes).encode("latin-1", "replace")[:_NOTE_BYTES]
        headers.append((b"x-helmdash-note", bytes(_PLAIN.sub(b" ", said))))
    return [
        *headers,
        *request_id_header(exchange),
        *remediation_headers(exchange.remediation),
    ]


def remediation_headers(state: RemediationState | None) -> list[Header]:
    """What remediation tells of a call; none where it is off (None)."""
    if state is None:
        return []
    headers: list[Header] = [(b"x-helmdash-remediation", state.action.encode())]
    if state.conversation is not None:
        headers.append((b"x-helmdash-conversation", state.conversation.encode()))
    if state.round_number is not None:
        headers.append((b"x-helmdash-round", b"%d" % state.round_number))
    if state.countdown is not None:
        headers.append((b"x-helmdash-countdown", b"%d" % state.countdown))
    if state.is_braked:
        headers.append((b"x-helmdash-care", b"braked"))
    return headers
