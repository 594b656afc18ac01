"""The resources there are, under the names and in the shapes of helmdeck ADR 050."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from django.utils import timezone

from helmdash.answers import members
from helmdash.core.access.permissions import Right, require
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.mcp.problems import not_found
from helmdash.mcp.routing_guide import read_guide
from helmdash.mcp.tools.conversations import read_health
from helmdash.mcp.visit import Visit
from helmdash.queries import upstreams
from helmdash.queries.budgets import budgets
from helmdash.queries.plans import my_plans
from helmdash.queries.plans.defaults import caller_defaults

MIME_TYPE: Final = "application/json"
_SCHEME: Final = "helmdeck://"
_HEALTH: Final = f"{_SCHEME}conversation-health/"

Body = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource: what agents see of it, and how it is read."""

    name: str
    description: str
    read: Callable[[Visit], Awaitable[Body]]
    right: Right = Right.READ

    @property
    def uri(self) -> str:
        """`helmdeck://` and the name."""
        return _SCHEME + self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Resources of one kind, told apart by a part of their address."""

    name: str
    uri: str
    description: str


async def read_resource(visit: Visit, uri: str) -> Body:
    """What is at an address. Raises Problem: no such resource, or the key may not read."""
    found = _BY_URI.get(uri)
    right = Right.READ if found is None else found.right
    require(visit.caller.actor, right, project_id=visit.project.id)
    if found is not None:
        return await found.read(visit)
    conversation = unquote(uri.removeprefix(_HEALTH))
    if not uri.startswith(_HEALTH) or not conversation or "\x00" in conversation:
        known = ", ".join([*_BY_URI, HEALTH_TEMPLATE.uri])
        raise not_found(f"There is no resource {uri[:200]!r}. There are {known}.")
    return await read_health(visit, conversation)


async def _context_budgets(visit: Visit) -> Body:
    found = await visit.threads.run(
        budgets.context_budgets, project_id=visit.project.id, now=timezone.now()
    )
    return {
        "fetched_at": found.fetched_at,
        "fallback": _budget(found.fallback),
        "budgets": [_budget(each) for each in found.budgets],
        "policy": found.policy,
    }


# An entry as helmdeck ADR 050 has it, and the prompt variant; what says "no" is left out.
_TOLD: Final = (
    *("model", "input_tokens", "output_tokens", "max_catalog_bytes", "tier", "prompt_variant"),
)
_TOLD_WHERE_SET: Final = (
    *("allows_llm_filter", "filter_model", "is_hybrid_reasoning", "wants_strict_json"),
    *("supports_prefix_cache", "cached_input_cost_usd_per_mtok"),
)


def _budget(value: EffectiveBudget) -> dict[str, object]:
    """The entry of one rule."""
    told = members(value)
    return {name: told[name] for name in _TOLD} | {
        name: told[name] for name in _TOLD_WHERE_SET if told[name]
    }


async def _my_plans(visit: Visit) -> Body:
    found = await visit.threads.run(
        my_plans, project_id=visit.project.id, caller=visit.caller.name, now=timezone.now()
    )
    return members(found)


async def _my_defaults(visit: Visit) -> Body:
    now = timezone.now()
    found = await visit.threads.run(
        caller_defaults, project_id=visit.project.id, caller=visit.caller.name, now=now
    )
    return members(found.told(now))


async def _routing_guide(visit: Visit) -> Body:
    return await visit.threads.run(read_guide, project_id=visit.project.id, now=timezone.now())


async def _models(visit: Visit) -> Body:
    endpoints = await visit.threads.run(upstreams.endpoints, project_id=visit.project.id)
    ids = await visit.shared.listings.all_ids(endpoints)
    return {
        "models": [{"id": each, "provider": each.partition("/")[0]} for each in ids],
        "fetched_at": timezone.now(),
    }


RESOURCES: tuple[Resource, ...] = (
    Resource(
        name="context-budgets",
        description="Safe tokens, catalog bytes, tier and abilities of every model",
        read=_context_budgets,
        right=Right.READ_BUDGETS,
    ),
    Resource(name="my-plans", description="What you have planned lately", read=_my_plans),
    Resource(name="my-defaults", description="What you use most, and how", read=_my_defaults),
    Resource(
        name="routing-guide",
        description="The current catalog, and how to choose from it",
        read=_routing_guide,
    ),
    Resource(name="models", description="Models that can be called now", read=_models),
)
HEALTH_TEMPLATE = Template(
    name="conversation-health",
    uri=_HEALTH + "{id}",
    description="How full a conversation's context is",
)
_BY_URI = {resource.uri: resource for resource in RESOURCES}
