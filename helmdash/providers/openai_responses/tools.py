"""Tools of the Responses API as functions: its own, within namespaces, custom and built-in ones.

What OpenAI's servers run by themselves (hosted tools) no other model can be offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from helmdash.providers.errors import BadRequest
from helmdash.providers.openai_responses.items.calls import (
    CUSTOM,
    CUSTOM_ARGUMENT,
    FUNCTION,
    built_in_name,
    flat_name,
)
from helmdash.providers.shared.members import filled_text_at, list_at, object_item
from helmdash.providers.shared.reported import list_in, object_in, objects_in, text_in
from helmdash.providers.wire import Choice, Json, Object, Tool, ToolChoice, ToolOrigin

_TEXT: Object = {"type": "string"}
_COUNT: Object = {"type": "integer"}


def _schema(required: str, **properties: Object) -> Object:
    return {"type": "object", "properties": properties, "required": required.split()}


# Built-in tools that the client's program runs, by the type of the tool: the type of its calls,
# what the model is told of it, and what it is given.
# https://platform.openai.com/docs/api-reference/responses/create, tools
_BUILT_IN: Mapping[str, tuple[str, str, Object]] = {
    "local_shell": (
        "local_shell_call",
        "Run one command on the user's machine.",
        _schema(
            "command",
            command={"type": "array", "items": _TEXT},
            working_directory=_TEXT,
            timeout_ms=_COUNT,
        ),
    ),
    "shell": (
        "shell_call",
        "Run shell commands on the user's machine, side by side.",
        _schema("commands", commands={"type": "array", "items": _TEXT}, timeout_ms=_COUNT),
    ),
    "apply_patch": (
        "apply_patch_call",
        "Create, update or delete one file. diff: in the V4A format; none to delete.",
        _schema(
            "type path",
            type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            path=_TEXT,
            diff=_TEXT,
        ),
    ),
}
_MODES = {"auto": Choice.AUTO, "none": Choice.NONE, "required": Choice.REQUIRED}
_ITEMS_WITH_TOOLS = ("additional_tools", "tool_search_output")
_OF_A_FUNCTION = "function"


@dataclass(slots=True)
class Offer:
    """The tools that a model may be offered, and what cannot be offered, a sentence each."""

    tools: list[Tool] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def read_tools(body: Object) -> Offer:
    """The tools of a request, also those that came up on the way (items of its input). Raises
    BadRequest naming the member."""
    offer = Offer()
    for at, tool in enumerate(list_at(body, "tools")):
        _read_tool(tool, f"tools[{at}]", offer)
    for at, item in enumerate(list_in(body, "input")):
        if isinstance(item, dict) and item.get("type") in _ITEMS_WITH_TOOLS:
            for index, tool in enumerate(list_in(item, "tools")):
                _read_tool(tool, f"input[{at}].tools[{index}]", offer)
    return offer


def read_choice(
    body: Object, tools: list[Tool]
) -> tuple[ToolChoice | None, list[Tool], str | None]:
    """What is said of calling tools, the tools that are left by it, and why it can be said to
    OpenAI only (None: it need not be). Raises BadRequest."""
    choice = body.get("tool_choice")
    if choice is None:
        return None, tools, None
    if isinstance(choice, str) and choice in _MODES:
        return ToolChoice(mode=_MODES[choice]), tools, None
    kind = choice.get("type") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(kind, str):
        raise BadRequest("tool_choice", "This has to be none, auto, required or a tool.")
    if kind == "allowed_tools":
        word = choice.get("mode") or "auto"
        mode = _MODES.get(word) if isinstance(word, str) else None
        if mode is None:
            raise BadRequest("tool_choice.mode", "This has to be auto or required.")
        names = {_chosen(each) for each in objects_in(choice, "tools")}
        return ToolChoice(mode=mode), [tool for tool in tools if tool.name in names], None
    name = _chosen(choice)
    if any(tool.name == name for tool in tools):
        return ToolChoice(mode=Choice.ONE, name=name), tools, None
    return None, tools, f"tool_choice: there is no function {name or kind} to be called."


def _chosen(choice: Object) -> str:
    """The function that a choice means: named, or a built-in tool by its type."""
    name, kind = text_in(choice, "name"), text_in(choice, "type")
    return flat_name(text_in(choice, "namespace"), name) if name else kind or ""


def _read_tool(value: Json, at: str, offer: Offer, *, namespace: str | None = None) -> None:
    tool = object_item(value, at)
    kind = tool.get("type", _OF_A_FUNCTION)
    match kind:
        case "function":
            offer.tools.append(_function(tool, at, namespace))
        case "custom":
            offer.tools.append(_custom(tool, at, namespace))
        case "namespace" if namespace is None:
            own = filled_text_at(tool, "name", path=at, fix="Name the namespace.")
            for index, inner in enumerate(list_at(tool, "tools", path=at)):
                _read_tool(inner, f"{at}.tools[{index}]", offer, namespace=own)
        case "tool_search" if tool.get("execution") == "client":
            offer.tools.append(_tool_search(tool))
        case str() if kind in _BUILT_IN and not _is_in_container(tool):
            offer.tools.append(_built_in(kind))
        case str():
            offer.left_out.append(f"The tool {kind[:64]} is run by OpenAI's servers: not offered.")
        case _:
            raise BadRequest(f"{at}.type", "This has to be a string.")


def _function(tool: Object, at: str, namespace: str | None) -> Tool:
    # Some clients send the chat API's form.
    inner = object_in(tool, "function")
    if inner is not None and "name" not in tool:
        tool, at = inner, f"{at}.function"
    name = filled_text_at(tool, "name", path=at, fix="Name the function.")
    strict = tool.get("strict")
    origin = ToolOrigin(item=FUNCTION, name=name, namespace=namespace)
    return Tool(
        name=flat_name(namespace, name),
        description=text_in(tool, "description"),
        parameters=object_in(tool, "parameters"),
        strict=strict if isinstance(strict, bool) else None,
        origin=origin if namespace is not None else None,
    )


def _custom(tool: Object, at: str, namespace: str | None) -> Tool:
    name = filled_text_at(tool, "name", path=at, fix="Name the tool.")
    told = " ".join(_told_of_input(object_in(tool, "format") or {}))
    return Tool(
        name=flat_name(namespace, name),
        description="\n\n".join(filter(None, (text_in(tool, "description"), told))),
        parameters=_schema(CUSTOM_ARGUMENT, **{CUSTOM_ARGUMENT: _TEXT}),
        origin=ToolOrigin(item=CUSTOM, name=name, namespace=namespace),
    )


def _told_of_input(form: Object) -> Iterator[str]:
    yield f"Put the whole text for the tool, as it is, into {CUSTOM_ARGUMENT}."
    definition = text_in(form, "definition")
    if definition is not None:
        yield f"It has to follow this {text_in(form, 'syntax') or 'grammar'} grammar:\n{definition}"


def _tool_search(tool: Object) -> Tool:
    kind = "tool_search_call"
    return Tool(
        name=built_in_name(kind),
        description=text_in(tool, "description"),
        parameters=object_in(tool, "parameters"),
        origin=ToolOrigin(item=kind, name=built_in_name(kind)),
    )


def _built_in(kind: str) -> Tool:
    item, description, parameters = _BUILT_IN[kind]
    return Tool(
        name=kind,
        description=description,
        parameters=parameters,
        origin=ToolOrigin(item=item, name=kind),
    )


def _is_in_container(tool: Object) -> bool:
    """Whether a shell is one of OpenAI's own machines, not the client's."""
    environment = object_in(tool, "environment")
    return environment is not None and environment.get("type") not in (None, "local")
