"""What is sent of a client's request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from helmdash.providers.wire import ChatRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRequest:
    """A request as the client wrote it, or as remediation wrote it anew: still in its own format.

    `parsed` is what `body` says; `chat` the same in plain values, None where no chat is asked for.
    `image_bytes` are the bytes of base64 that its `images` take of the body.
    """

    body: bytes
    parsed: dict[str, Any]
    chat: ChatRequest | None = None
    images: int = 0
    image_bytes: int = 0

    @property
    def text_bytes(self) -> int:
        """UTF-8 bytes of the body without the base64 of images: what estimates and readings go
        by."""
        return max(len(self.body) - self.image_bytes, 0)
