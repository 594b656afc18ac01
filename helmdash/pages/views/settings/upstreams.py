"""Upstreams: where calls may go, with which key, and whether they answer."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from helmdash import conf
from helmdash.core.access.permissions import Right
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.core.upstreams.upstream_variables import KNOWN, OLLAMA_HOST, OLLAMA_KEY
from helmdash.pages import scope
from helmdash.pages.guards import takes
from helmdash.pages.parts.budgets.preflight import ROOM_WORDS
from helmdash.pages.render import PageRequest, show
from helmdash.providers.registry import is_glob
from helmdash.queries import preflight, upstreams
from helmdash.queries.upstreams import KeyPlace, UpstreamInfo
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.listing import Probe, probe

# Somebody waits for the page; a list of models takes a second or two at most.
_TEST_SECONDS = 10.0
# More than these are counted, not shown: OpenRouter lists hundreds.
_MOST_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRow:
    """One upstream with what a page says of its key and its use."""

    info: UpstreamInfo

    @property
    def key(self) -> str:
        """Where the key is and whether it is there; never the key."""
        info = self.info
        match info.key_place:
            case KeyPlace.VARIABLE:
                return f"{info.key_variable} ({'set' if info.has_key else 'missing'})"
            case KeyPlace.STORED:
                return "stored" if info.has_key else "stored, but unreadable"
            case KeyPlace.NONE:
                return "none"

    @property
    def is_keyless(self) -> bool:
        """There should be a key, and there is none."""
        return self.info.key_place is not KeyPlace.NONE and not self.info.has_key

    @property
    def is_used(self) -> bool:
        """Calls may go there, as far as its row says."""
        return self.info.enabled and not self.info.shadowed

    @property
    def use(self) -> str:
        """Whether calls go there, and why not."""
        if not self.info.enabled:
            return "disabled"
        return "in use" if self.is_used else "not used: another of its name comes first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What came of a test; `models` are a first few, as `provider/model`."""

    name: str
    result: Probe
    models: tuple[str, ...]

    @property
    def more(self) -> int:
        """How many models are not shown."""
        return len(self.result.models) - len(self.models)


@require_safe
def upstream_list(request: PageRequest) -> HttpResponse:
    """Every upstream of the project, those out of use too."""
    return _show(request)


@require_POST
@takes(Right.MANAGE_UPSTREAMS)
def test_stored(request: PageRequest, pk: int) -> HttpResponse:
    """Ask a stored upstream for its models, whether it is enabled or not. Raises Http404 for one
    that does not exist."""
    scoped = scope.read(request)
    endpoint = upstreams.find_endpoint(
        actor=scoped.actor, project_id=scoped.project.id, upstream_id=pk
    )
    if endpoint is None:
        raise Http404("There is no such upstream (any more).")
    return _show(request, tested=_test(endpoint))


@require_POST
@takes(Right.MANAGE_UPSTREAMS)
def test_named(request: PageRequest) -> HttpResponse:
    """Ask an upstream of the environment for its models."""
    name = request.POST.get("name", "").replace("\x00", "")
    for endpoint in conf.environment_upstreams():
        if endpoint.name == name:
            return _show(request, tested=_test(endpoint))
    messages.error(request, f"name: the environment names no upstream called {name[:64]}.")
    return HttpResponseRedirect(reverse("upstreams"))


def _show(request: PageRequest, *, tested: Tested | None = None) -> HttpResponse:
    request.now = timezone.now()
    project = scope.current_project(request)
    found = upstreams.listing(project_id=project.id)
    context = {
        "rows": [UpstreamRow(info=info) for info in found],
        "tested": tested,
        "preflights": preflight.upstream_preflights(
            project_id=scope.current_project(request).id, now=timezone.now()
        ),
        "rooms": ROOM_WORDS,
        "known": KNOWN,
        "ollama_host": OLLAMA_HOST,
        "ollama_key": OLLAMA_KEY,
    }
    return show(request, "pages/upstreams.html", context)


def _test(endpoint: Endpoint) -> Tested:
    result = asyncio.run(_probe(endpoint))
    plain = [model for model in result.models if not is_glob(model)][:_MOST_SHOWN]
    models = tuple(f"{endpoint.name}/{model}" for model in plain)
    return Tested(name=endpoint.name, result=result, models=models)


async def _probe(endpoint: Endpoint) -> Probe:
    """With a client of its own: the gateway's lives on another event loop."""
    patient = replace(endpoint, read_timeout_s=min(endpoint.read_timeout_s, _TEST_SECONDS))
    started = time.monotonic()
    client = UpstreamClient()
    try:
        async with asyncio.timeout(_TEST_SECONDS):
            return await probe(client, patient)
    except TimeoutError:
        return Probe(
            ok=False,
            message=f"Upstream {endpoint.name} gave no list of models "
            f"within {_TEST_SECONDS:.0f} seconds.",
            models=(),
            ms=round((time.monotonic() - started) * 1000),
        )
    finally:
        await client.aclose()
