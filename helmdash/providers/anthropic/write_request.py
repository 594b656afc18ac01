"""A request in our words, written as a Messages request.

What the API refuses is repaired where the meaning stays: system messages go to `system`, empty
text is left out, turns alternate and begin with the user. Members the API has no word for (seed,
penalties, another format's `extra`) are left out; a part only another format knows is refused.
"""

from __future__ import annotations

from typing import Any

from helmdash.core.text.jsontext import TooDeep
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.anthropic.abilities.json_mode import plan_json
from helmdash.providers.anthropic.abilities.thinking import (
    ThinkingPlan,
    forces_a_tool,
    plan_thinking,
)
from helmdash.providers.anthropic.abilities.traits import Traits, traits_of
from helmdash.providers.anthropic.exact_json import to_json
from helmdash.providers.anthropic.http import post
from helmdash.providers.anthropic.tools import write_tools
from helmdash.providers.anthropic.write_messages import write_conversation
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.wire import ChatRequest, Json

_LEAST_TOP_P_WITH_THINKING = 0.95


def write_request(request: ChatRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
    """The request for an upstream. Raises CannotTranslate for what the API cannot say."""
    try:
        body = to_json(request_body(request, model=model))
    except TooDeep as error:
        raise CannotTranslate("A tool's arguments or schema are nested too deeply.") from error
    return post(endpoint, "/messages", body)


def request_body(request: ChatRequest, *, model: str) -> dict[str, Any]:
    """The body as an object; members the client left unsaid are not in it."""
    traits = traits_of(model)
    json_plan = plan_json(request, traits)
    tools, choice, notes = write_tools(request, json_plan, traits)
    is_forced = json_plan.tool is not None or forces_a_tool(request)
    thinking = plan_thinking(request, traits, is_forced=is_forced)
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": thinking.max_tokens,
        **write_conversation(request, notes, traits),
        "tools": tools,
        "tool_choice": choice,
        "thinking": thinking.thinking,
        "output_config": {"format": json_plan.format, "effort": thinking.effort},
        **_sampling(request, traits, thinking),
        "stop_sequences": [word for word in request.stop if word.strip()],
        "metadata": _metadata(request),
        "stream": request.stream or None,
    }
    body["output_config"] = _said(body["output_config"])
    return _said(body)


# --- the rest


def _sampling(request: ChatRequest, traits: Traits, thinking: ThinkingPlan) -> dict[str, Json]:
    """Temperature goes to 1 here, not 2, and thinking leaves next to nothing to choose."""
    if not traits.sampling:
        return {}
    temperature = None if request.temperature is None else min(max(request.temperature, 0), 1)
    top_p = request.top_p
    top_k = request.top_k
    if thinking.thinking is not None:
        temperature = top_k = None
        if top_p is not None and top_p < _LEAST_TOP_P_WITH_THINKING:
            top_p = None
    if temperature is not None and not traits.temperature_with_top_p:
        top_p = None
    return {"temperature": temperature, "top_p": top_p, "top_k": top_k}


def _metadata(request: ChatRequest) -> Json:
    """The API takes a user's id and refuses every other member."""
    user = (request.metadata or {}).get("user_id")
    return {"user_id": user} if isinstance(user, str) and user else None


def _said(body: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in body.items() if value not in (None, [], {})}
