"""Ollama's OpenAI-shaped API, for what speaks nothing else.

It has no way to say `num_ctx`: the server uses its default window, whatever the budget was. So
only `NativeClient` belongs behind a context manager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic

from helmdash.providers.shared.members import without_nones
from helmdash.providers.wire import Json, Object
from helmdash.upstream.ollama.errors import OllamaError
from helmdash.upstream.ollama.values import Ping
from helmdash.upstream.ollama.wire import PING_TIMEOUT_S, Transport, milliseconds_since


class OpenAIClient(Transport):
    """A client of one server; see `Transport` for how to make it."""

    async def chat(
        self,
        model: str,
        messages: Sequence[Object],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        timeout_s: float | None = None,
        **more: Json,
    ) -> Object:
        """One completion, whole, as the API gives it. None: not sent; timeout_s (seconds) None: the
        client's own. Raises OllamaError, OllamaTimeout."""
        told = without_nones(max_tokens=max_tokens, temperature=temperature)
        body = {"model": model, "messages": list(messages), **told, **more, "stream": False}
        return await self.ask("/v1/chat/completions", body, timeout_s=timeout_s)

    async def ping(self, *, timeout_s: float = PING_TIMEOUT_S) -> Ping:
        """Whether the server lists its models here. Never raises."""
        began = monotonic()
        try:
            value = await self.ask("/v1/models", timeout_s=timeout_s)
        except OllamaError as error:
            return Ping(is_available=False, error=str(error))
        listed = value.get("data")
        models = [
            each["id"]
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, Mapping) and isinstance(each.get("id"), str)
        ]
        return Ping(is_available=True, models=tuple(models), latency_ms=milliseconds_since(began))
