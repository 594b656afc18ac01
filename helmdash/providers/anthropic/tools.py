"""Tools and the choice among them, as the Messages API takes them."""

from __future__ import annotations

from helmdash.providers.anthropic.abilities.json_mode import JsonPlan
from helmdash.providers.anthropic.abilities.traits import Traits
from helmdash.providers.wire import ChatRequest, Choice, Json, Tool

_CHOICE_WORDS = {Choice.AUTO: "auto", Choice.REQUIRED: "any", Choice.NONE: "none"}


def write_tools(
    request: ChatRequest, plan: JsonPlan, traits: Traits
) -> tuple[list[Json], Json, list[str]]:
    """The tools, the choice among them, and what the model has to be told about it in words."""
    tools = [_tool(tool, traits) for tool in request.tools]
    if plan.tool is not None:
        tools.append(plan.tool)
    if not tools:
        return [], None, []
    kind, name = _wanted(request, plan)
    if kind in ("any", "tool") and not traits.forced_tools:
        note = f"Answer by calling the tool {name}." if name else "Answer by calling a tool."
        kind, name = "auto", None
        return tools, _choice(kind, name, request), [note]
    return tools, _choice(kind, name, request), []


def _wanted(request: ChatRequest, plan: JsonPlan) -> tuple[str | None, str | None]:
    """With JSON as a tool, every reply is a tool call: that one, or one of the client's."""
    choice = request.tool_choice
    is_about_tools = choice is None or choice.mode is not Choice.NONE
    if choice is not None and choice.mode is Choice.ONE:
        return "tool", choice.name
    if plan.tool is not None:
        if request.tools and is_about_tools:
            return "any", None
        return "tool", str(plan.tool["name"])
    return (None if choice is None else _CHOICE_WORDS[choice.mode]), None


def _choice(kind: str | None, name: str | None, request: ChatRequest) -> Json:
    parallel = request.parallel_tool_calls
    if kind is None and parallel is None:
        return None
    choice: dict[str, Json] = {"type": kind or "auto"}
    if name is not None:
        choice["name"] = name
    if parallel is not None and kind != "none":
        choice["disable_parallel_tool_use"] = not parallel
    return choice


def _tool(tool: Tool, traits: Traits) -> Json:
    schema = dict(tool.parameters or {})
    schema.setdefault("type", "object")
    if not tool.parameters:
        schema["properties"] = {}
    written: dict[str, Json] = {"name": tool.name, "input_schema": schema}
    if tool.description is not None:
        written["description"] = tool.description
    if tool.strict is not None and traits.structured_output:
        written["strict"] = tool.strict
    return written
