"""The list of published figures (fixtures/published_models.json), made of the data of genai-prices.

That package is what vendors publish, kept by many and checked daily. Its data is a module of
1.6 MB with rules in four kinds; of these the list takes names and beginnings of names, which are
nearly all, and of prices those for tokens, at the day below and before any surcharge for length.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from genai_prices.data import providers
from genai_prices.types import ClauseEquals, ClauseOr, ClauseStartsWith, TieredPrices

from helmdash.installation import FIXTURES

LIST: Final = FIXTURES / "published_models.json"
# Prices change by the day, and some by the hour of it.
AS_OF: Final = datetime(2026, 11, 29, 12, tzinfo=UTC)
_LICENSE: Final = "MIT, Copyright (c) Pydantic Services Inc. 2025 to present"
# Who is known by another name to people, upstreams and routers.
_OTHER_NAMES: Final = {
    "aws": ("bedrock",),
    "fireworks": ("fireworks_ai",),
    "github-copilot": ("github_copilot",),
    "google": ("gemini", "vertex_ai"),
    "mistral": ("mistralai",),
    "moonshotai": ("moonshot",),
    "together": ("together_ai",),
    "x-ai": ("xai",),
    "zai": ("z-ai",),
}
# Whose own models they are: a bare name means theirs, and no reseller's.
_MAKERS: Final = frozenset(
    {"anthropic", "arcee", "cohere", "deepseek", "google", "meta", "minimax", "mistral",
     "moonshotai", "openai", "perplexity", "voyageai", "x-ai", "zai"}
)  # fmt: skip
_PRICES: Final = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok")


def made() -> str:
    """The list as the file has it: a line for each model, so that a new release reads as a diff."""
    told = ",\n".join(
        f"  {json.dumps(provider.id)}: {_section(provider)}"
        for provider in sorted(providers, key=lambda each: each.id)
        # Routes of Hugging Face's, which people write otherwise.
        if not provider.id.startswith("huggingface_")
    )
    source = json.dumps(f"genai-prices {version('genai-prices')}")
    head = f'"source": {source},\n "license": "{_LICENSE}",\n "as_of": "{AS_OF:%Y-%m-%d}"'
    return f'{{\n {head},\n "providers": {{\n{told}\n }}\n}}\n'


def _section(provider: Any) -> str:
    head = {
        "also": list(_OTHER_NAMES.get(provider.id, ())),
        "is_maker": provider.id in _MAKERS,
    }
    rows = ",\n".join(f"    {_line(each)}" for each in _models(provider))
    return f'{_line(head)[:-1]},"models":[\n{rows}\n  ]}}'


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _models(provider: Any) -> Iterator[dict[str, object]]:
    taken: set[str] = set()
    for model in provider.models:
        names, begins = _names_of(model)
        # The first rule that fits is the one that holds.
        own = sorted(name for name in names - taken if provider.find_model(name) in (model, None))
        taken |= names
        prices = [_price(model.get_prices(AS_OF), each) for each in _PRICES]
        if own and (model.context_window or any(each is not None for each in prices)):
            yield {
                "names": own,
                "begins": sorted(begins),
                "window": model.context_window,
                "usd": prices,
            }


def _names_of(model: Any) -> tuple[set[str], set[str]]:
    clauses = model.match.or_ if isinstance(model.match, ClauseOr) else [model.match]
    names = {each.equals.lower() for each in clauses if isinstance(each, ClauseEquals)}
    begins = {each.starts_with.lower() for each in clauses if isinstance(each, ClauseStartsWith)}
    return {model.id.lower(), *names}, begins


def _price(prices: Any, name: str) -> float | None:
    found = getattr(prices, name, None)
    if isinstance(found, TieredPrices):
        found = found.base
    return None if found is None else float(found)
