"""A client's Messages request, read (platform.claude.com/docs/en/api/messages).

What only Anthropic knows is kept apart: content blocks as `Other`, top-level members in `extra`.
Server tools (web_search, bash, …) and adaptive thinking without an effort go to `extra` too. They
reach Anthropic when the request is passed through; a translation leaves them out, and the model
answers without them. Of the marks of cacheable prefixes, those on texts reach whoever knows such
marks; those on other blocks and on tools, their lifetimes, and citations survive a pass-through
only.
"""

from __future__ import annotations

from typing import Any

from helmdash.providers.anthropic.read_messages import read_messages, read_system
from helmdash.providers.anthropic.values import (
    flag_at,
    number_at,
    object_at,
    optional_object_at,
    optional_text_at,
    string_at,
    texts_at,
    whole_at,
)
from helmdash.providers.protocols import BadRequest
from helmdash.providers.wire import ChatRequest, Choice, Json, JsonMode, Object, Tool, ToolChoice

_READ = frozenset(
    """model messages system max_tokens metadata stop_sequences stream temperature top_k top_p
    tools tool_choice thinking output_config output_format""".split()
)
_CHOICES = {
    "auto": Choice.AUTO,
    "any": Choice.REQUIRED,
    "none": Choice.NONE,
    "tool": Choice.ONE,
}
# Anthropic's two highest efforts have no word in the other formats.
_EFFORTS = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}


def read_request(body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
    """Read a Messages request.

    Raises BadRequest naming the member by its path, as `messages.2.content.0.type`. A maximum of
    0 tokens is allowed: it warms the prompt cache without a reply.
    """
    try:
        return _read(body, model=model, stream=stream)
    except RecursionError as error:
        raise BadRequest("messages", "Nest the arguments of tools less deeply.") from error


def _read(body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
    effort, budget, thinking_left = _thinking(body)
    tools, tools_left = _tools(body.get("tools"))
    choice, is_parallel = _tool_choice(body.get("tool_choice"), tools)
    extra = {name: value for name, value in body.items() if name not in _READ}
    return ChatRequest(
        model=model or string_at(body.get("model"), "model", "Name the model."),
        messages=(*read_system(body.get("system"), "system"), *read_messages(body.get("messages"))),
        stream=flag_at(body.get("stream"), "stream") or False if stream is None else stream,
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=is_parallel,
        json_mode=_json_mode(body),
        max_tokens=_max_tokens(body.get("max_tokens")),
        temperature=number_at(body.get("temperature"), "temperature"),
        top_p=number_at(body.get("top_p"), "top_p"),
        top_k=whole_at(body.get("top_k"), "top_k"),
        stop=texts_at(body.get("stop_sequences"), "stop_sequences"),
        reasoning_effort=effort,
        reasoning_tokens=budget,
        metadata=optional_object_at(body.get("metadata"), "metadata"),
        extra={**extra, **tools_left, **thinking_left},
    )


# --- tools


def _tools(value: Json) -> tuple[tuple[Tool, ...], dict[str, Any]]:
    """The client's own tools, and the vendor's, which stay as they came."""
    if value is None:
        return (), {}
    if not isinstance(value, list):
        raise BadRequest("tools", "Send a list of tools.")
    own: list[Tool] = []
    vendors: list[Json] = []
    for index, item in enumerate(value):
        tool = object_at(item, f"tools.{index}")
        if tool.get("type") in (None, "custom"):
            own.append(_tool(tool, f"tools.{index}"))
        else:
            vendors.append(tool)
    return tuple(own), {"tools": vendors} if vendors else {}


def _tool(tool: Object, path: str) -> Tool:
    return Tool(
        name=string_at(tool.get("name"), f"{path}.name"),
        description=optional_text_at(tool.get("description"), f"{path}.description"),
        parameters=object_at(tool.get("input_schema"), f"{path}.input_schema"),
        strict=flag_at(tool.get("strict"), f"{path}.strict"),
    )


def _tool_choice(value: Json, tools: tuple[Tool, ...]) -> tuple[ToolChoice | None, bool | None]:
    choice = optional_object_at(value, "tool_choice")
    if choice is None:
        return None, None
    kind = choice.get("type")
    if not isinstance(kind, str) or kind not in _CHOICES:
        raise BadRequest("tool_choice.type", 'Use "auto", "any", "tool" or "none".')
    no_parallel = flag_at(
        choice.get("disable_parallel_tool_use"), "tool_choice.disable_parallel_tool_use"
    )
    is_parallel = None if no_parallel is None else not no_parallel
    if kind != "tool":
        return ToolChoice(mode=_CHOICES[kind]), is_parallel
    name = string_at(choice.get("name"), "tool_choice.name", "Name the tool.")
    if all(tool.name != name for tool in tools):
        return None, is_parallel  # one of the vendor's tools, which no translation offers
    return ToolChoice(mode=Choice.ONE, name=name), is_parallel


# --- the rest


def _thinking(body: Object) -> tuple[str | None, int | None, dict[str, Any]]:
    """Effort, budget, and what of `thinking` and `output_config` only Anthropic understands."""
    thinking = optional_object_at(body.get("thinking"), "thinking") or {}
    config = optional_object_at(body.get("output_config"), "output_config") or {}
    left: dict[str, Any] = {}
    word = optional_text_at(config.get("effort"), "output_config.effort")
    effort = _EFFORTS.get(word or "")
    read = {"format", "effort"} if effort else {"format"}  # the vendor may find new words
    rest = {name: value for name, value in config.items() if name not in read}
    if rest:
        left["output_config"] = rest
    match thinking.get("type") if thinking else "adaptive":
        case "enabled":
            budget = whole_at(thinking.get("budget_tokens"), "thinking.budget_tokens")
            if budget is None or budget < 1:
                raise BadRequest("thinking.budget_tokens", "Send a whole number from 1024 up.")
            return effort, budget, left
        case "disabled":
            return "none", None, left
        case str():
            if thinking and effort is None:
                left["thinking"] = thinking
            return effort, None, left
        case _:
            raise BadRequest("thinking.type", 'Use "enabled", "adaptive" or "disabled".')


def _json_mode(body: Object) -> JsonMode | None:
    """`output_config.format`, or `output_format` as it was called while in beta."""
    config = optional_object_at(body.get("output_config"), "output_config") or {}
    for path, value in (
        ("output_config.format", config.get("format")),
        ("output_format", body.get("output_format")),
    ):
        wanted = optional_object_at(value, path)
        if wanted is not None:
            if wanted.get("type") != "json_schema":
                raise BadRequest(f"{path}.type", 'Use "json_schema".')
            return JsonMode(schema=object_at(wanted.get("schema"), f"{path}.schema"))
    return None


def _max_tokens(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadRequest(
            "max_tokens", "Say how many tokens the reply may have, as a positive whole number."
        )
    return value
