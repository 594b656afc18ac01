"""The windows of upstreams' models, looked up in the background and remembered."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic

from helmdash.core.endpoints import Endpoint
from helmdash.providers.bodies import to_json
from helmdash.providers.ollama.shown import read_show
from helmdash.providers.ollama.upstream import post
from helmdash.upstream.client import UpstreamClient

log = logging.getLogger(__name__)

# A model changes its window when somebody builds it anew.
_MAX_AGE_S = 300.0
# A server that did not answer is asked again after this.
_RETRY_S = 15.0
_PATIENCE_S = 5.0
_MOST_BYTES = 4 * 1024 * 1024
# Names of models come from callers.
_MOST_MODELS = 1000

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Known:
    window_tokens: int | None
    until: float


class Windows:
    """What `/api/show` tells, at hand on the event loop: no call ever waits for it."""

    def __init__(self, client: UpstreamClient) -> None:
        self._client = client
        self._known: OrderedDict[_Key, _Known] = OrderedDict()
        self._asking: dict[_Key, asyncio.Task[None]] = {}

    def known(self, endpoint: Endpoint, model: str) -> int | None:
        """A model's own window in tokens; None where it is not known (yet). Asks nobody."""
        found = self._known.get((endpoint.name, endpoint.base_url, model))
        return found.window_tokens if found is not None else None

    def learn(self, endpoint: Endpoint, model: str) -> None:
        """Ask for a model's window in the background, unless the answer is here and fresh.

        It holds for five minutes, and goes on holding while it is asked for again.
        """
        key = (endpoint.name, endpoint.base_url, model)
        found = self._known.get(key)
        if found is None or found.until < monotonic():
            self._look_up(endpoint, model, key)

    def close(self) -> None:
        """Give up what is still being asked. On the event loop."""
        for task in self._asking.values():
            task.cancel()

    def _look_up(self, endpoint: Endpoint, model: str, key: _Key) -> None:
        if key in self._asking or len(self._asking) >= _MOST_MODELS:
            return
        task = asyncio.get_running_loop().create_task(self._ask(endpoint, model, key))
        self._asking[key] = task
        task.add_done_callback(lambda _: self._asking.pop(key, None))

    async def _ask(self, endpoint: Endpoint, model: str, key: _Key) -> None:
        before = self._known.get(key)
        known = _Known(before.window_tokens if before else None, monotonic() + _RETRY_S)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                window = await self._window(endpoint, model)
            known = _Known(window, monotonic() + _MAX_AGE_S)
        except Exception as error:
            log.debug("the window of a model of %s is not known: %s", endpoint.name, error)
        self._known[key] = known
        self._known.move_to_end(key)
        if len(self._known) > _MOST_MODELS:
            self._known.popitem(last=False)

    async def _window(self, endpoint: Endpoint, model: str) -> int | None:
        request = post(endpoint, "show", to_json({"model": model}))
        opened = await self._client.open(endpoint, request, max_attempts=1)
        try:
            data = await opened.read(_MOST_BYTES)
        finally:
            await opened.close()
        shown = read_show(data)
        if opened.status >= 400 or shown is None:
            raise LookupError(f"/api/show answered {opened.status}")
        return shown.window_tokens
