"""By which ids other doors will tell of a call of the gateway's.

Claude Code writes the response header `request-id` into its transcript and its telemetry, and the
message's id into the former; Codex writes the response's id into its rollout, Gemini CLI into its
telemetry. Where an upstream of another vendor answers, those are ours.
"""

from __future__ import annotations

from collections.abc import Iterable

from helmdash.core.upstreams.endpoints import WireFormat
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.responder import Header
from helmdash.providers.anthropic.outcomes import message_id
from helmdash.providers.wire import Reply

_REQUEST_ID = b"request-id"
# As long as an id of a call may be, with what stands before it.
_MOST_CHARS = 100


def request_id_of(headers: Iterable[Header]) -> str | None:
    """The upstream's own id of the request, among the headers that the client gets."""
    return next(
        (value.decode("latin-1").strip() for name, value in headers if name == _REQUEST_ID), None
    )


def request_id_header(exchange: Exchange) -> list[Header]:
    """An id for clients that want one, where the upstream gave none: without it, what they write
    down of a call could not be told from others."""
    if exchange.route.client.wire is not WireFormat.ANTHROPIC or exchange.request_id is not None:
        return []
    return [(_REQUEST_ID, exchange.call_id.encode())]


def names_elsewhere(exchange: Exchange, reply: Reply) -> tuple[str, ...]:
    """Ids as readers of transcripts and telemetry make them."""
    wire = exchange.route.client.wire
    if wire is WireFormat.ANTHROPIC:
        message = message_id(reply.id, exchange.call_id)
        found = (exchange.request_id or exchange.call_id, message)
        return tuple(f"anthropic:{name}" for name in found if _is_usable(name))
    if wire is WireFormat.RESPONSES:
        made = f"resp_{exchange.call_id.removeprefix('call_')}"
        name = reply.id if exchange.is_native else made
        return (f"codex:{name}",) if _is_usable(name) else ()
    return ()


def reply_id_elsewhere(exchange: Exchange, reply: Reply) -> str | None:
    """The reply's id as Gemini CLI gets it and tells it in its telemetry; None to other clients."""
    if exchange.route.client.wire is not WireFormat.GEMINI:
        return None
    name = reply.id if exchange.is_native else reply.id or exchange.call_id
    return name if _is_usable(name) else None


def _is_usable(name: str | None) -> bool:
    return bool(name) and name is not None and len(name) <= _MOST_CHARS and name.isprintable()
