"""The request that remediation sends instead of the client's."""

from __future__ import annotations

from helmdash.core.care.restarts import Beginning, arrange
from helmdash.gateway.histories.history import History
from helmdash.gateway.histories.rewriting import rewritten
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.prompt_weight import weigh
from helmdash.gateway.routes import Route
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
    chat = client.read_request(parsed, model=route.model, stream=route.stream)
    images, composition = weigh(chat)
    return OutgoingRequest(
        body=body, parsed=parsed, chat=chat, images=images, composition=composition
    )


def bytes_of(history: History, beginning: Beginning) -> int:
    """The bytes of the body that the request would have with this beginning."""
    steps = arrange(history.entries, beginning)
    body, _ = rewritten(history.form, history.body, history.parsed, steps)
    return len(body)
