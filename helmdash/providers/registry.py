"""All the formats there are, and which endpoint a model goes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from helmdash.core.upstreams.endpoints import Endpoint, EndpointSource, ProviderKind, WireFormat
from helmdash.core.values import quick_value
from helmdash.providers import anthropic, gemini, ollama, openai, openai_responses
from helmdash.providers.protocols import ClientFormat, SpokenFormat, UpstreamFormat

# What clients may speak, by name. OpenAI has three formats, Gemini and Ollama two each.
CLIENTS: Mapping[str, ClientFormat] = {
    each.name: each
    for each in (
        openai.CLIENT,
        openai_responses.CLIENT,
        openai_responses.COMPACT_CLIENT,
        anthropic.CLIENT,
        gemini.CLIENT,
        gemini.ARRAY_CLIENT,
        ollama.CLIENT,
        ollama.GENERATE_CLIENT,
    )
}
UPSTREAMS: Mapping[ProviderKind, UpstreamFormat] = {
    each.kind: each
    for each in (openai.UPSTREAM, anthropic.UPSTREAM, gemini.UPSTREAM, ollama.UPSTREAM)
}
# What upstreams may be spoken to in, and answer in.
SPOKEN: Mapping[WireFormat, SpokenFormat] = {
    each.wire: each for each in (*UPSTREAMS.values(), openai_responses.SPOKEN)
}

# The bare model names that belong to a vendor, by the name of its endpoint from the environment:
# such an endpoint says nothing about its models. Routers like OpenRouter own no bare names.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    # https://platform.openai.com/docs/models
    "openai": tuple(
        """gpt-* o1* o3* o4* chatgpt-* codex-* text-embedding-* omni-moderation-* davinci-*
        babbage-*""".split()
    ),
    # https://docs.claude.com/en/docs/about-claude/models/overview
    "anthropic": ("claude-*",),
    # https://ai.google.dev/gemini-api/docs/models
    "gemini": ("gemini-*", "gemma-*", "learnlm-*", "text-embedding-004", "embedding-001"),
    # https://api-docs.deepseek.com/quick_start/pricing
    "deepseek": ("deepseek-chat", "deepseek-reasoner", "deepseek-v*"),
    # https://docs.mistral.ai/getting-started/models/models_overview/
    "mistral": tuple(
        """mistral-* ministral-* magistral-* codestral-* devstral-* pixtral-* voxtral-*
        open-mistral-* open-mixtral-* labs-devstral-*""".split()
    ),
}

_LATEST = ":latest"  # Ollama's tag of a name that has none


@quick_value(frozen=True, slots=True, kw_only=True)
class ModelRoute:
    """Where a request goes: an endpoint, and the model as that endpoint calls it."""

    endpoint: Endpoint
    model: str


def choose(
    model: str,
    *,
    endpoints: Sequence[Endpoint],
    default: str | None = None,
    listed: Mapping[str, Iterable[str]] | None = None,
) -> ModelRoute | None:
    """The endpoint a model goes to; None where there is none.

    `endpoints` are the enabled ones, best first; `default` names one of them; `listed` holds the
    live ids of endpoints that configure none, by endpoint name. In this order: `provider/model`
    that names an endpoint; an exact id (of any letter case); a glob; a vendor's own family, for
    endpoints of the environment; the default.
    """
    name = model.strip()
    if not name:
        return None
    return (
        _by_provider(name, endpoints)
        or _by_exact_id(name, endpoints, listed or {})
        or _by_glob(name, endpoints)
        or _by_family(name, endpoints)
        or _by_default(name, endpoints, default)
    )


def family_of(endpoint: Endpoint) -> tuple[str, ...]:
    """The globs of bare names that are an environment endpoint's own; none for any other."""
    if endpoint.source is not EndpointSource.ENVIRONMENT or endpoint.models:
        return ()
    return FAMILIES.get(endpoint.name.lower(), ())


def is_glob(pattern: str) -> bool:
    """Whether `*`, `?` or `[` make it a pattern, which no list of models has as an id."""
    return any(sign in pattern for sign in "*?[")


def _by_provider(name: str, endpoints: Sequence[Endpoint]) -> ModelRoute | None:
    provider, _, rest = name.partition("/")
    rest = rest.strip()
    if not rest:
        return None
    wanted = provider.strip().lower()
    found = next((end for end in endpoints if end.name.lower() == wanted), None)
    return ModelRoute(endpoint=found, model=rest) if found is not None else None


def _by_exact_id(
    name: str, endpoints: Sequence[Endpoint], listed: Mapping[str, Iterable[str]]
) -> ModelRoute | None:
    """An id exactly as it is listed wins over one of another letter case."""
    for fold in (str, str.lower):
        for endpoint in endpoints:
            ids = endpoint.models or listed.get(endpoint.name, ())
            for known in ids:
                if not is_glob(known) and _is_same(fold(known), fold(name), endpoint.kind):
                    return ModelRoute(endpoint=endpoint, model=known)
    return None


def _by_glob(name: str, endpoints: Sequence[Endpoint]) -> ModelRoute | None:
    for endpoint in endpoints:
        if _matches(name, filter(is_glob, endpoint.models)):
            return ModelRoute(endpoint=endpoint, model=name)
    return None


def _by_family(name: str, endpoints: Sequence[Endpoint]) -> ModelRoute | None:
    """A family that names the id wins over one whose glob happens to match it."""
    families = [(endpoint, family_of(endpoint)) for endpoint in endpoints]
    naming = (endpoint for endpoint, family in families if name.lower() in family)
    matching = (endpoint for endpoint, family in families if _matches(name, family))
    found = next(naming, None) or next(matching, None)
    return ModelRoute(endpoint=found, model=name) if found is not None else None


def _by_default(name: str, endpoints: Sequence[Endpoint], default: str | None) -> ModelRoute | None:
    wanted = (default or "").strip().lower()
    found = next((end for end in endpoints if end.name.lower() == wanted), None)
    return ModelRoute(endpoint=found, model=name) if found is not None else None


def _matches(name: str, globs: Iterable[str]) -> bool:
    folded = name.lower()
    return any(fnmatchcase(folded, glob.strip().lower()) for glob in globs)


def _is_same(known: str, name: str, kind: ProviderKind) -> bool:
    known = known.strip()
    if known == name:
        return True
    return kind is ProviderKind.OLLAMA and known == name + _LATEST
