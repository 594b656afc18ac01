"""Which models a server has, and the window of each, as the server itself tells them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from helmdash.providers.ollama.shown import Shown
from helmdash.upstream.ollama.client import NativeClient
from helmdash.upstream.ollama.errors import OllamaError
from helmdash.upstream.ollama.wire import PING_TIMEOUT_S

# Each answer comes from a file of the server; more at once gains nothing.
_AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One model. `shown` has no window where the server told none."""

    name: str
    shown: Shown

    @property
    def window_tokens(self) -> int | None:
        """The smaller known of the trained window and the configured one; None is unknown."""
        return self.shown.window_tokens


async def discover(client: NativeClient, *, timeout_s: float = PING_TIMEOUT_S) -> tuple[Found, ...]:
    """The models of a server in its own order; none where it has none.

    Raises OllamaError when it does not list them. A model that it cannot show has unknown windows.
    """
    names = await client.models(timeout_s=timeout_s)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def show(name: str) -> Found:
        async with gate:
            try:
                return Found(name=name, shown=await client.show(name, timeout_s=timeout_s))
            except OllamaError:
                return Found(name=name, shown=Shown())

    return tuple(await asyncio.gather(*map(show, names)))
