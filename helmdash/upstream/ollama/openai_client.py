"""Ollama's OpenAI-shaped API, for what speaks nothing else.

It has no way to say `num_ctx`: the server uses its default window, whatever the budget was. So
only `NativeClient` belongs behind a context manager.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from helmdash.providers.openai.http import CHAT_PATH, MODELS_PATH, get, post
from helmdash.providers.shared.bodies import to_json
from helmdash.providers.shared.members import without_nones
from helmdash.providers.shared.reported import objects_in, text_in
from helmdash.providers.wire import Json, Object
from helmdash.upstream.ollama.errors import OllamaError
from helmdash.upstream.ollama.values import Ping
from helmdash.upstream.ollama.wire import PING_TIMEOUT_S, OllamaTransport, milliseconds_since


class OpenAIClient(OllamaTransport):
    """A client of one server; see `OllamaTransport` for how to make it."""

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
        request = post(self.endpoint, f"/v1{CHAT_PATH}", to_json(body))
        return await self.ask(request, timeout_s=timeout_s)

    async def ping(self, *, timeout_s: float = PING_TIMEOUT_S) -> Ping:
        """Whether the server lists its models here. Never raises."""
        began = monotonic()
        try:
            value = await self.ask(get(self.endpoint, f"/v1{MODELS_PATH}"), timeout_s=timeout_s)
        except OllamaError as error:
            return Ping(is_available=False, error=str(error))
        ids = (text_in(each, "id") for each in objects_in(value, "data"))
        return Ping(
            is_available=True,
            models=tuple(each for each in ids if each is not None),
            latency_ms=milliseconds_since(began),
        )
