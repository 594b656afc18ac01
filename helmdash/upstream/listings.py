"""Which models there are: of upstreams that say so in their row, and of those that are asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from helmdash.core.budgets.model_names import split_window
from helmdash.core.calls.completion import UnknownModel
from helmdash.core.upstreams.endpoints import Account, Endpoint
from helmdash.core.upstreams.upstream_variables import advice_for
from helmdash.providers.registry import ModelRoute, choose, is_glob
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.listing import list_models
from helmdash.upstream.spoken_formats import SpokenFormats

log = logging.getLogger(__name__)

# Lists change when somebody installs a model or a vendor publishes one.
_MAX_AGE_S = 300.0
# An upstream that did not answer is asked again after this.
_RETRY_S = 15.0
_PATIENCE_S = 5.0
# A list without windows is not asked for the sake of windows again before that.
_SILENT_S = 3600.0
# Models that callers ask for within a moment; their names are theirs to choose.
_MOST_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class _Listing:
    ids: tuple[str, ...]
    until: float
    windows: Mapping[str, int] = field(default_factory=dict)
    # When it is asked for the sake of windows again.
    learn_at: float = 0.0


class Listings:
    """The live lists of upstreams, each asked at most every five minutes. `formats`: what else they
    have shown of themselves."""

    def __init__(self, client: UpstreamClient) -> None:
        self.formats = SpokenFormats()
        self._client = client
        self._known: dict[Account, _Listing] = {}
        self._asking: dict[Account, asyncio.Task[None]] = {}
        # Models that were found without asking, among these very endpoints and lists.
        self._found: dict[str, tuple[Sequence[Endpoint], ModelRoute]] = {}

    async def choose(
        self, model: str, endpoints: Sequence[Endpoint], *, default: str
    ) -> ModelRoute:
        """The upstream of a model. Raises UnknownModel when there is none for it.

        Upstreams that do not list their models are asked, if nothing else answers the question. A
        suffix of the model that names a window is ours and the client's affair: none knows it.
        """
        known = self._found.get(model)
        if known is not None and known[0] is endpoints:
            return known[1]
        bare = split_window(model).model
        listed = self._listed(endpoints)
        found = choose(bare, endpoints=endpoints, listed=listed)
        if found is not None:
            self._remember(model, endpoints, found)
        else:
            # Vendors' own families need no asking; nor does anything that lists what it serves.
            await self._ask([each for each in endpoints if not each.models])
            listed = self._listed(endpoints)
            found = choose(bare, endpoints=endpoints, default=default or None, listed=listed)
        if found is None:
            names = {each.name for each in endpoints}
            raise UnknownModel(model, advice=advice_for(bare, names))
        return found

    def _remember(self, model: str, endpoints: Sequence[Endpoint], found: ModelRoute) -> None:
        if len(self._found) >= _MOST_REMEMBERED:
            self._found.clear()
        self._found[model] = (endpoints, found)

    def _keep(self, key: Account, listing: _Listing) -> None:
        self._known[key] = listing
        self._found.clear()

    async def all_ids(self, endpoints: Sequence[Endpoint]) -> list[str]:
        """Every model as `provider/model`, in the order of the upstreams."""
        return [f"{each.name}/{model}" for each, model in await self.all_served(endpoints)]

    async def all_served(self, endpoints: Sequence[Endpoint]) -> list[tuple[Endpoint, str]]:
        """Every upstream's models by its own ids, in the order of the upstreams, without globs.

        An upstream that does not respond has none: the others' are listed all the same.
        """
        await self._ask([each for each in endpoints if not each.models or _has_globs(each)])
        listed = self._listed(endpoints)
        served: list[tuple[Endpoint, str]] = []
        for endpoint in endpoints:
            own = [name for name in endpoint.models if not is_glob(name)]
            for name in dict.fromkeys([*own, *listed.get(endpoint.name, ())]):
                served.append((endpoint, name))
        return served

    def window(self, endpoint: Endpoint, model: str) -> int | None:
        """The window (tokens) that the upstream lists for a model; None: not known. Asks nobody."""
        known = self._known.get(endpoint.account)
        return known.windows.get(model.lower()) if known is not None else None

    def learn(self, endpoint: Endpoint) -> None:
        """Ask for the upstream's list in the background, unless it was asked for lately.

        Every five minutes where it tells windows, for a server may be set up anew, or could not
        list (one that loads its model will); every hour where its list has none. On the event loop.
        """
        known = self._known.get(endpoint.account)
        if known is None or known.learn_at < monotonic():
            self._task(endpoint)

    async def aclose(self) -> None:
        """Give up what is still being asked."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _listed(self, endpoints: Sequence[Endpoint]) -> dict[str, tuple[str, ...]]:
        return {
            each.name: listing.ids
            for each in endpoints
            if (listing := self._known.get(each.account)) is not None
        }

    async def _ask(self, endpoints: Sequence[Endpoint]) -> None:
        moment = monotonic()
        due = [
            each
            for each in endpoints
            if (known := self._known.get(each.account)) is None or known.until < moment
        ]
        if due:
            await asyncio.wait([self._task(each) for each in due], timeout=_PATIENCE_S)

    def _task(self, endpoint: Endpoint) -> asyncio.Task[None]:
        key = endpoint.account
        task = self._asking.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._load(endpoint))
            self._asking[key] = task
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        return task

    async def _load(self, endpoint: Endpoint) -> None:
        try:
            listed = await list_models(self._client, endpoint)
            moment = monotonic()
            windows = {name.lower(): tokens for name, tokens in listed.windows.items()}
            learn_at = moment + (_MAX_AGE_S if windows else _SILENT_S)
            listing = _Listing(listed.ids, moment + _MAX_AGE_S, windows, learn_at)
            self._keep(endpoint.account, listing)
        except Exception as error:
            log.info("the upstream %s did not list its models: %s", endpoint.name, error)
            before = self._known.get(endpoint.account)
            moment = monotonic()
            listing = _Listing(
                before.ids if before else (),
                moment + _RETRY_S,
                before.windows if before else {},
                moment + _MAX_AGE_S,
            )
            self._keep(endpoint.account, listing)


def _has_globs(endpoint: Endpoint) -> bool:
    return any(map(is_glob, endpoint.models))
