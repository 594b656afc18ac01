"""A client's Messages request, read (platform.claude.com/docs/en/api/messages).

What only Anthropic knows is kept apart: content blocks as `Other`, top-level members in `extra`.
Server tools (web_search, bash, …) and adaptive thinking without an effort go to `extra` too. They
reach Anthropic when the request is passed through; a translation leaves them out, and the model
answers without them. Of the marks of cacheable prefixes, those on texts reach whoever knows such
marks; those on other blocks and on tools, their lifetimes, and citations survive a pass-through
only.

A request of a message thread (…/build-with-claude/message-threads) may be a fragment: it goes on
from a reply whose conversation, system prompt and tools the server keeps, and holds what is new.
"""

from __future__ import annotations

from typing import Any

from helmdash.core.text.jsontext import TooDeep
from helmdash.providers.anthropic.read_messages import read_messages, read_system
from helmdash.providers.errors import BadRequest
from helmdash.providers.shared.members import (
    count_at,
    filled_text_at,
    flag_at,
    list_at,
    number_at,
    object_at,
    object_item,
    required_object_at,
    text_at,
)
from helmdash.providers.wire import ChatRequest, Choice, Json, JsonMode, Object, Tool, ToolChoice

_READ = frozenset(
    """model messages system max_tokens metadata stop_sequences stream temperature top_k top_p
    tools tool_choice thinking output_config output_format thread""".split()
)
_GOES_ON = "continue"
_NO_THREAD = "no conversation is kept for this model. Send the whole of it, without this member."
_CHOICES = {
    "auto": Choice.AUTO,
    "any": Choice.REQUIRED,
    "none": Choice.NONE,
    "tool": Choice.ONE,
}
# Anthropic's two highest efforts have no word in the other formats.
_EFFORTS = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}


def read_request(body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
    """Read a Messages request; `model` and `stream` None: as the body says.

    Raises BadRequest naming the member by its path, as `messages.2.content.0.type`. A maximum of 0
    tokens is allowed: it warms the prompt cache without a reply.
    """
    try:
        return _read(body, model=model, stream=stream)
    except TooDeep as error:
        raise BadRequest("messages", "Nest the arguments of tools less deeply.") from error


def _read(body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
    effort, budget, thinking_left = _thinking(body)
    tools, tools_left = _tools(body)
    choice, is_parallel = _tool_choice(body, tools)
    extra = {name: value for name, value in body.items() if name not in _READ}
    thread = object_at(body, "thread")
    goes_on = thread is not None and thread.get("type") == _GOES_ON
    return ChatRequest(
        model=model or filled_text_at(body, "model", fix="Name the model."),
        messages=(
            *read_system(body.get("system"), "system"),
            *read_messages(body.get("messages"), may_be_none=goes_on),
        ),
        stream=flag_at(body, "stream") or False if stream is None else stream,
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=is_parallel,
        json_mode=_json_mode(body),
        max_tokens=_max_tokens(body.get("max_tokens")),
        temperature=number_at(body, "temperature"),
        top_p=number_at(body, "top_p"),
        top_k=count_at(body, "top_k"),
        stop=_stop(body),
        reasoning_effort=effort,
        reasoning_tokens=budget,
        metadata=object_at(body, "metadata"),
        extra={**extra, **tools_left, **thinking_left},
        is_fragment=goes_on or None,
        continues=text_at(thread, "previous_message_id", path="thread") if thread else None,
        keeps_reply=True if thread is not None or body.get("diagnostics") else None,
        untranslatable=None if thread is None else f"thread: {_NO_THREAD}",
    )


# --- tools


def _tools(body: Object) -> tuple[tuple[Tool, ...], dict[str, Any]]:
    """The client's own tools, and the vendor's, which stay as they came."""
    own: list[Tool] = []
    vendors: list[Json] = []
    for index, item in enumerate(list_at(body, "tools")):
        tool = object_item(item, f"tools.{index}")
        if tool.get("type") in (None, "custom"):
            own.append(_tool(tool, f"tools.{index}"))
        else:
            vendors.append(tool)
    return tuple(own), {"tools": vendors} if vendors else {}


def _tool(tool: Object, path: str) -> Tool:
    return Tool(
        name=filled_text_at(tool, "name", path=path),
        description=text_at(tool, "description", path=path),
        parameters=required_object_at(tool, "input_schema", path=path),
        strict=flag_at(tool, "strict", path=path),
    )


def _tool_choice(body: Object, tools: tuple[Tool, ...]) -> tuple[ToolChoice | None, bool | None]:
    choice = object_at(body, "tool_choice")
    if choice is None:
        return None, None
    kind = choice.get("type")
    if not isinstance(kind, str) or kind not in _CHOICES:
        raise BadRequest("tool_choice.type", 'Use "auto", "any", "tool" or "none".')
    no_parallel = flag_at(choice, "disable_parallel_tool_use", path="tool_choice")
    is_parallel = None if no_parallel is None else not no_parallel
    if kind != "tool":
        return ToolChoice(mode=_CHOICES[kind]), is_parallel
    name = filled_text_at(choice, "name", path="tool_choice", fix="Name the tool.")
    if all(tool.name != name for tool in tools):
        return None, is_parallel  # one of the vendor's tools, which no translation offers
    return ToolChoice(mode=Choice.ONE, name=name), is_parallel


# --- the rest


def _thinking(body: Object) -> tuple[str | None, int | None, dict[str, Any]]:
    """Effort, budget, and what of `thinking` and `output_config` only Anthropic understands."""
    thinking = object_at(body, "thinking") or {}
    config = object_at(body, "output_config") or {}
    left: dict[str, Any] = {}
    word = text_at(config, "effort", path="output_config")
    effort = _EFFORTS.get(word or "")
    read = {"format", "effort"} if effort else {"format"}  # the vendor may find new words
    rest = {name: value for name, value in config.items() if name not in read}
    if rest:
        left["output_config"] = rest
    match thinking.get("type") if thinking else "adaptive":
        case "enabled":
            budget = count_at(thinking, "budget_tokens", path="thinking")
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
    config = object_at(body, "output_config") or {}
    for holder, outer, name in ((config, "output_config", "format"), (body, "", "output_format")):
        wanted = object_at(holder, name, path=outer)
        if wanted is not None:
            path = f"{outer}.{name}" if outer else name
            if wanted.get("type") != "json_schema":
                raise BadRequest(f"{path}.type", 'Use "json_schema".')
            return JsonMode(schema=required_object_at(wanted, "schema", path=path))
    return None


def _stop(body: Object) -> tuple[str, ...]:
    """No single text, which other formats take: Anthropic refuses it."""
    words = list_at(body, "stop_sequences")
    for index, word in enumerate(words):
        if not isinstance(word, str):
            raise BadRequest(f"stop_sequences.{index}", "This has to be a string.")
    return tuple(words)


def _max_tokens(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadRequest(
            "max_tokens", "Say how many tokens the reply may have, as a positive whole number."
        )
    return value
