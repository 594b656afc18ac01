"""Calls of tools in the Responses API, which has a type of item for each kind of tool, both ways.

Every kind becomes a call of a function, and the function's `ToolOrigin` leads back: a tool within a
namespace by a joined name, a custom tool by one argument that holds its text, a built-in tool that
the client's own program runs by the object that it gets.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from helmdash.providers.shared.bodies import json_text, read_json
from helmdash.providers.shared.reported import text_in
from helmdash.providers.shared.tool_ids import arguments_text
from helmdash.providers.wire import Json, Object, ToolCall, ToolOrigin

FUNCTION, CUSTOM = "function_call", "custom_tool_call"
# The one argument of the function that a custom tool becomes.
CUSTOM_ARGUMENT = "input"
# Calls of built-in tools that the client's program runs, and the member that says what to do.
BUILT_IN: Mapping[str, str] = {
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "tool_search_call": "arguments",
}
_ID_PREFIXES = {FUNCTION: "fc", CUSTOM: "ctc", "local_shell_call": "lsh", "shell_call": "sh"}
_JOINT = "__"
# What a function may be called in OpenAI's chat API, the narrowest of the vendors'.
_LONGEST_NAME = 64
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def is_call(kind: Json) -> bool:
    """Whether an item of this type asks the client to run something."""
    return isinstance(kind, str) and (kind in (FUNCTION, CUSTOM) or kind in BUILT_IN)


def flat_name(namespace: str | None, name: str) -> str:
    """The one name of a tool within a namespace: both joined, as long as a name may be.

    A longer one ends in a hash, so that it stays the tool's own.
    """
    if not namespace:
        return name
    joined = _NOT_IN_A_NAME.sub("_", f"{namespace}{_JOINT}{name}")
    if len(joined) <= _LONGEST_NAME:
        return joined
    digest = hashlib.sha256(f"{namespace}{_JOINT}{name}".encode("utf-8", "replace")).hexdigest()
    return f"{joined[: _LONGEST_NAME - 9]}_{digest[:8]}"


def call_of(item: Object) -> ToolCall | None:
    """The call that an item is, as far as it can be read; None for any other item."""
    kind = item.get("type")
    call_id = text_in(item, "call_id") or text_in(item, "id") or ""
    if kind == FUNCTION:
        name = flat_name(text_in(item, "namespace"), text_in(item, "name") or "")
        return ToolCall(id=call_id, name=name, arguments=arguments_text(item.get("arguments")))
    if kind == CUSTOM:
        name = flat_name(text_in(item, "namespace"), text_in(item, "name") or "")
        said = {CUSTOM_ARGUMENT: text_in(item, "input") or ""}
        return ToolCall(id=call_id, name=name, arguments=json_text(said))
    if isinstance(kind, str) and kind in BUILT_IN:
        told = item.get(BUILT_IN[kind])
        return ToolCall(id=call_id, name=built_in_name(kind), arguments=json_text(told))
    return None


def built_in_name(kind: str) -> str:
    """The function that a built-in tool becomes, by the type of its calls."""
    return kind.removesuffix("_call")


def item_of(
    call: ToolCall, *, origin: ToolOrigin | None, number: str, status: str
) -> dict[str, Json]:
    """The item of a call, as the client knows the tool; origin None: a function.

    number: what makes the item's own id. A call that was cut off keeps what came of it.
    """
    kind = origin.item if origin is not None else FUNCTION
    item: dict[str, Json] = {
        "id": f"{_ID_PREFIXES.get(kind, kind.removesuffix('_call'))}_{number}",
        "type": kind,
        "status": status,
        "call_id": call.id,
    }
    if kind in BUILT_IN:
        return item | _built_in(kind, call.arguments)
    name = origin.name if origin is not None else call.name
    item["name"] = name
    if origin is not None and origin.namespace is not None:
        item["namespace"] = origin.namespace
    if kind == CUSTOM:
        return item | {"input": custom_input(call.arguments)}
    return item | {"arguments": call.arguments}


def custom_input(arguments: str) -> str:
    """The text that a custom tool is given: its one argument, or all that the model wrote."""
    told = read_json(arguments.encode("utf-8", "replace"))
    text = told.get(CUSTOM_ARGUMENT) if isinstance(told, dict) else None
    return text if isinstance(text, str) else arguments


def _built_in(kind: str, arguments: str) -> dict[str, Json]:
    told = read_json(arguments.encode("utf-8", "replace"))
    said = told if isinstance(told, dict) else {}
    if kind == "local_shell_call":
        said = {"type": "exec", "env": {}, **said}
    if kind == "tool_search_call":
        return {"arguments": said, "execution": "client"}
    return {BUILT_IN[kind]: said}
