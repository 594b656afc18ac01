"""What is sent of a client's request."""

from __future__ import annotations

from typing import Any

from helmdash.core.calls.composition import Composition
from helmdash.core.values import quick_value
from helmdash.providers.wire import ChatRequest


@quick_value(frozen=True, slots=True, kw_only=True)
class OutgoingRequest:
    """A request as the client wrote it, or as remediation wrote it anew: still in its own format.

    `parsed` is what `body` says; `chat` the same in plain values, None where no chat is asked for.
    `images`: how many it holds. `composition`: what fills it, but for its tools; None where no chat
    is asked for. `deferred_bytes`: of tools that the provider keeps out of the prompt.
    """

    body: bytes
    parsed: dict[str, Any]
    chat: ChatRequest | None = None
    images: int = 0
    composition: Composition | None = None
    deferred_bytes: int = 0

    @property
    def text_bytes(self) -> int:
        """UTF-8 bytes of the body without the base64 of images and without deferred tools: what
        estimates and readings go by."""
        images = self.composition.images if self.composition is not None else None
        return max(len(self.body) - (images or 0) - self.deferred_bytes, 0)
