"""One request, understood as far as its headers go, and the call it becomes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime

from helmdash.core.budgets.model_names import beta_window, split_window
from helmdash.core.conversations.clients import client_of
from helmdash.core.values import quick_value
from helmdash.doors.callers.directory import KeyContext
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.refusals import bad_request
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.requests.options import RequestOptions
from helmdash.gateway.requests.routes import Route

_MODEL_CHARS = 255  # as long as records keep it
# Ids have to differ, not to be secret: no system call for each.
_chance = random.Random()  # noqa: S311


@quick_value(frozen=True, slots=True, kw_only=True)
class GatewayRequest:
    """Who asks for what, and how."""

    route: Route
    key_context: KeyContext
    options: RequestOptions
    headers: Mapping[bytes, bytes]
    started_at: datetime
    started_ns: int
    admitted_at: float
    """When its key was looked at, by time.monotonic."""

    def begin(self, model: object, body: bytes, *, purpose: str = "chat") -> Exchange:
        """A new call, with an id that sorts by time. Raises Refusal (400) if no record can hold the
        model's id."""
        named = _checked_model(model)
        client_window = split_window(named).window or beta_window(
            self.headers.get(b"anthropic-beta", b"")
        )
        millis = int(self.started_at.timestamp() * 1000)
        return Exchange(
            call_id=f"call_{millis:012x}{_chance.getrandbits(64):016x}",
            route=self.route,
            key_context=self.key_context,
            options=self.options,
            headers=self.headers,
            model=named,
            client=client_of(self.headers.get(b"user-agent", b"").decode("latin-1")),
            client_window=client_window,
            purpose=purpose,
            started_at=self.started_at,
            started_ns=self.started_ns,
            outgoing=OutgoingRequest(body=body, parsed={}),
            conversation=self.options.conversation,
            parent=self.options.parent,
        )


def _checked_model(model: object) -> str:
    """A model id as the client wrote it, trimmed."""
    text = model.strip() if isinstance(model, str) else ""
    if not text or len(text) > _MODEL_CHARS or not text.isprintable():
        raise bad_request(
            f"model: use 1 to {_MODEL_CHARS} printable characters, such as provider/model."
        )
    return text
