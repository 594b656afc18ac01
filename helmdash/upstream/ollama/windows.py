"""The windows of upstreams' models, as their servers tell them: looked up and remembered.

Two questions tell it: `/api/show` what the model was trained for and what its Modelfile sets,
`/api/ps` what it is loaded with, which is the server's own setting (OLLAMA_CONTEXT_LENGTH) unless
a request named another. What we have sent ourselves is no news, so such an answer is passed over.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, replace
from time import monotonic

from helmdash.core.upstreams.endpoints import Account, Endpoint
from helmdash.providers.ollama.http import get
from helmdash.providers.ollama.shown import Shown, read_running, read_show, show_request
from helmdash.providers.protocols import HttpRequest
from helmdash.upstream.client import Fetched, UpstreamClient

log = logging.getLogger(__name__)

# A model changes its window when somebody builds it anew.
_MAX_AGE_S = 300.0
# A server that did not answer is asked again after this.
_RETRY_S = 15.0
_PATIENCE_S = 5.0
# As long as the first call of a model waits: a server on the same machine answers at once.
_FIRST_PATIENCE_S = 1.0
_MOST_BYTES = 4 * 1024 * 1024
# Names of models come from callers.
_MOST_MODELS = 1000

_Key = tuple[Account, str]


@dataclass(frozen=True, slots=True)
class ServerWindow:
    """What a server says of a model, in tokens: its window, and the most that the model can have at
    all; None: not known (yet)."""

    tokens: int | None = None
    most_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    window: ServerWindow
    until: float
    own_tokens: int | None = None  # the server's own setting, once it was seen


_UNKNOWN = ServerWindow()


class Windows:
    """What `/api/show` and `/api/ps` tell, at hand on the event loop."""

    def __init__(
        self, client: UpstreamClient, *, first_patience_s: float = _FIRST_PATIENCE_S
    ) -> None:
        self._client = client
        self._first_patience_s = first_patience_s
        self._known: OrderedDict[_Key, _Known] = OrderedDict()
        self._asking: dict[_Key, asyncio.Task[None]] = {}
        self._sent: OrderedDict[_Key, int] = OrderedDict()

    async def of_model(self, endpoint: Endpoint, model: str, *, waits: bool) -> ServerWindow:
        """A model's window as far as it is known. waits: where nobody has asked yet, the server is
        asked and waited for, but not for long.

        The first call of a model would else be given the window of a row that knows nothing.
        """
        key = (endpoint.account, model)
        if waits and key not in self._known:
            self._look_up(endpoint, model, key)
            task = self._asking.get(key)
            if task is not None:
                await asyncio.wait([task], timeout=self._first_patience_s)
        found = self._known.get(key)
        return found.window if found is not None else _UNKNOWN

    def sent(self, endpoint: Endpoint, model: str, num_ctx: int) -> None:
        """Note what a request tells the server to use."""
        key = (endpoint.account, model)
        self._sent[key] = num_ctx
        self._sent.move_to_end(key)
        if len(self._sent) > _MOST_MODELS:
            self._sent.popitem(last=False)

    def learn(self, endpoint: Endpoint, model: str) -> None:
        """Ask for a model's window in the background, unless the answer is here and fresh.

        It holds for five minutes, and goes on holding while it is asked for again.
        """
        key = (endpoint.account, model)
        found = self._known.get(key)
        if found is None or found.until < monotonic():
            self._look_up(endpoint, model, key)

    def expire(self) -> None:
        """Take every answer for an old one, as it is after five minutes."""
        for key, known in self._known.items():
            self._known[key] = replace(known, until=0.0)

    async def settled(self) -> None:
        """Wait for the answers that are still to come."""
        if self._asking:
            await asyncio.wait(list(self._asking.values()))

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
        known = replace(before or _Known(_UNKNOWN, 0.0), until=monotonic() + _RETRY_S)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                shown = await self._shown(endpoint, model)
                own = await self._own(endpoint, model, key) or known.own_tokens
            window = ServerWindow(_window(shown, own), shown.trained_tokens)
            known = _Known(window, monotonic() + _MAX_AGE_S, own)
        except Exception as error:
            log.debug("the window of a model of %s is not known: %s", endpoint.name, error)
        self._known[key] = known
        self._known.move_to_end(key)
        if len(self._known) > _MOST_MODELS:
            self._known.popitem(last=False)

    async def _shown(self, endpoint: Endpoint, model: str) -> Shown:
        fetched = await self._fetch(endpoint, show_request(endpoint, model))
        shown = read_show(fetched.body)
        if fetched.status >= 400 or shown is None:
            raise LookupError(f"/api/show answered {fetched.status}")
        return shown

    async def _own(self, endpoint: Endpoint, model: str, key: _Key) -> int | None:
        """What the server has loaded the model with by itself; None where it does not tell."""
        fetched = await self._fetch(endpoint, get(endpoint, "ps"))
        loaded = read_running(fetched.body, model) if fetched.status < 400 else None
        return None if loaded == self._sent.get(key) else loaded

    async def _fetch(self, endpoint: Endpoint, request: HttpRequest) -> Fetched:
        return await self._client.fetch(endpoint, request, limit_bytes=_MOST_BYTES, max_attempts=1)


def _window(shown: Shown, own: int | None) -> int | None:
    """The server's own setting, else what the Modelfile sets, else what the model was trained for;
    never more than that."""
    known = [own or shown.configured_tokens, shown.trained_tokens]
    return min((tokens for tokens in known if tokens is not None), default=None)
