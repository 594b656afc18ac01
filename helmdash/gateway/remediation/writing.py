"""The request that remediation sends instead of the client's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from helmdash.core.care.restarts import Beginning, PartKind, arrange
from helmdash.gateway.histories.history import History
from helmdash.gateway.histories.rewriting import rewritten
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.prompt_weight import deferred_bytes, weigh, with_user_text
from helmdash.gateway.requests.routes import Route
from helmdash.providers.protocols import ClientFormat


def written(
    history: History,
    beginning: Beginning,
    *,
    guide: str | None = None,
    route: Route,
    client: ClientFormat,
) -> OutgoingRequest:
    """The client's request with this beginning and, for this call only, a `guide` in it (None:
    none)."""
    steps = arrange(history.entries, beginning, guide=guide)
    body, parsed = rewritten(history.form, history.body, history.parsed, steps)
    if steps[-1].piece is PartKind.SAID and len(steps) == len(history.entries) + 1:
        longer = _with_last(history, body, parsed, route=route, client=client)
        if longer is not None:
            return longer
    chat = client.read_request(parsed, model=route.model, stream=route.stream)
    images, composition = weigh(chat)
    return OutgoingRequest(
        body=body,
        parsed=parsed,
        chat=chat,
        images=images,
        composition=composition,
        deferred_bytes=deferred_bytes(parsed) if history.request.deferred_bytes else 0,
    )


def _with_last(
    history: History,
    body: bytes,
    parsed: dict[str, Any],
    *,
    route: Route,
    client: ClientFormat,
) -> OutgoingRequest | None:
    """The request as it came with one text more at its end, of which only that is read: agents have
    hundreds of messages. None where what came was not read as a chat."""
    came, member = history.request, history.form.member
    if came.chat is None or came.composition is None or not isinstance(parsed[member], list):
        return None
    alone = {**parsed, member: parsed[member][-1:]}
    last = client.read_request(alone, model=route.model, stream=route.stream).messages[-1]
    return OutgoingRequest(
        body=body,
        parsed=parsed,
        chat=replace(came.chat, messages=(*came.chat.messages, last)),
        images=came.images,
        composition=with_user_text(came.composition, last),
        deferred_bytes=came.deferred_bytes,
    )


def bytes_of(history: History, beginning: Beginning) -> int:
    """The bytes of the body that the request would have with this beginning."""
    steps = arrange(history.entries, beginning)
    body, _ = rewritten(history.form, history.body, history.parsed, steps)
    return len(body)
