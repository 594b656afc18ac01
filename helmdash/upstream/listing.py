"""Asking an upstream which models it has: to find them by name, and to test that it works."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.openai.http import get
from helmdash.providers.protocols import UpstreamFormat
from helmdash.providers.registry import UPSTREAMS
from helmdash.providers.shared.listed_windows import is_llama_cpp, read_props, read_windows
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.failures import FailureKind, UpstreamFailed, tidy

# A list is ready at once: nobody thinks about it.
_READ_SECONDS = 20.0
_ATTEMPTS = 2
# OpenRouter's list, the longest known, has about 1 MB.
_MOST_BYTES = 8 * 1024 * 1024
_MOST_MODELS = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What came of a test: a sentence for the page, the models found, and how long it took."""

    ok: bool
    message: str
    models: tuple[str, ...]
    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An upstream's models, and the windows (tokens) of those of which it tells any."""

    ids: tuple[str, ...]
    windows: Mapping[str, int]


async def list_models(client: UpstreamClient, endpoint: Endpoint) -> Listed:
    """An upstream's models, as it lists them. Not cached here: keep it for 5 minutes.

    Raises UpstreamFailed: `misconfigured` when it answers with an error or with no list.
    """
    upstream = UPSTREAMS[endpoint.kind]
    patient = replace(endpoint, read_timeout_s=min(endpoint.read_timeout_s, _READ_SECONDS))
    request = upstream.models_request(endpoint=patient)
    fetched = await client.fetch(patient, request, limit_bytes=_MOST_BYTES, max_attempts=_ATTEMPTS)
    if fetched.status != 200:
        sentence = _refusal(upstream, endpoint, fetched.status, fetched.body)
        raise UpstreamFailed(FailureKind.MISCONFIGURED, sentence, fetched.attempts)
    try:
        ids = upstream.read_models(fetched.body)[:_MOST_MODELS]
    except ValueError:
        raise UpstreamFailed(
            FailureKind.MISCONFIGURED,
            f"Upstream {endpoint.name} did not answer with a list of models. Check its base URL "
            f"and that it speaks the API of {endpoint.kind.value}.",
            fetched.attempts,
        ) from None
    return Listed(ids=ids, windows=await _windows(client, patient, ids, fetched.body))


async def _windows(
    client: UpstreamClient, endpoint: Endpoint, ids: tuple[str, ...], body: bytes
) -> Mapping[str, int]:
    """What the list tells; of llama.cpp's server, which has one model, how it was started."""
    found = read_windows(body)
    if endpoint.kind is ProviderKind.OPENAI and is_llama_cpp(body):
        tokens = await _of_props(client, endpoint)
        if tokens is not None:
            return dict.fromkeys(ids, tokens)
    return found


async def _of_props(client: UpstreamClient, endpoint: Endpoint) -> int | None:
    root = replace(endpoint, base_url=endpoint.base_url.rstrip("/").removesuffix("/v1"))
    try:
        fetched = await client.fetch(
            root, get(root, "/props"), limit_bytes=_MOST_BYTES, max_attempts=1
        )
    except UpstreamFailed:
        return None
    return read_props(fetched.body) if fetched.status == 200 else None


async def probe(client: UpstreamClient, endpoint: Endpoint) -> Probe:
    """Test an upstream by asking for its models. Never raises for what the upstream does."""
    started = time.monotonic()
    try:
        models = (await list_models(client, endpoint)).ids
    except UpstreamFailed as failure:
        return Probe(ok=False, message=failure.message, models=(), ms=_ms_since(started))
    count = f"{len(models)} model{'' if len(models) == 1 else 's'}"
    return Probe(
        ok=True,
        message=f"Upstream {endpoint.name} answers and lists {count}.",
        models=models,
        ms=_ms_since(started),
    )


def _refusal(upstream: UpstreamFormat, endpoint: Endpoint, status: int, body: bytes) -> str:
    said = tidy(upstream.read_error(status, body).message, key=endpoint.api_key)
    sentence = f"Upstream {endpoint.name} answered HTTP {status} when asked for its models"
    return f"{sentence}: {said}" if said else f"{sentence}."


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
