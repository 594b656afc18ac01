"""The input of a Responses request, read into messages.

https://platform.openai.com/docs/api-reference/responses/create: a text, or items. Items by which a
model said something follow each other where other APIs have one message: they become one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from helmdash.providers.errors import BadRequest
from helmdash.providers.openai_responses.items.calls import call_of, is_call
from helmdash.providers.openai_responses.items.compactions import KINDS, summary_in
from helmdash.providers.openai_responses.items.reasoning import reasoning_of
from helmdash.providers.shared.bodies import json_text
from helmdash.providers.shared.images import image_from_url
from helmdash.providers.shared.members import object_item, required_text_at, text_at
from helmdash.providers.shared.reported import text_in
from helmdash.providers.wire import (
    Image,
    Json,
    Message,
    Object,
    Other,
    Part,
    Role,
    Text,
    ToolResult,
)

COMPACTION = "compaction"
_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
_OUTPUTS = frozenset(
    """function_call_output custom_tool_call_output local_shell_call_output shell_call_output
    apply_patch_call_output computer_call_output tool_search_output""".split()
)
# What OpenAI's servers did by themselves: the model's own words tell what came of it.
_HOSTED = frozenset(
    """web_search_call file_search_call code_interpreter_call image_generation_call mcp_call
    mcp_list_tools mcp_approval_request mcp_approval_response program program_output""".split()
)
# What names an item that the server keeps, and how the ids of reasoning begin.
_REFERENCE = "item_reference"
_THOUGHT = "rs_"
# How the kinds of items end that bring what a client ran.
_RAN = "_output"
# Items whose meaning is read elsewhere.
_READ_ELSEWHERE = frozenset({"additional_tools"})


@dataclass(slots=True)
class Input:
    """What the input says. `left_out` and `untranslatable` as in ChatRequest."""

    messages: list[Message] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    untranslatable: str | None = None
    is_whole: bool = True

    def add(self, role: Role, *parts: Part) -> None:
        """Add parts; those of an assistant go on with its message."""
        last = self.messages[-1] if self.messages else None
        if role is Role.ASSISTANT and last is not None and last.role is role:
            self.messages[-1] = Message(role=role, parts=(*last.parts, *parts))
        else:
            self.messages.append(Message(role=role, parts=parts))


def read_input(value: Json, into: Input) -> None:
    """Add what the input says. Raises BadRequest naming the member."""
    if value is None:
        return
    if isinstance(value, str):
        into.add(Role.USER, Text(text=value))
        return
    if not isinstance(value, list):
        raise BadRequest("input", "This has to be a string or an array of items.")
    for at, item in enumerate(value):
        _read_item(object_item(item, f"input[{at}]"), f"input[{at}]", into)


def _read_item(item: Object, at: str, into: Input) -> None:
    kind = item.get("type", "message" if "role" in item else None)
    if not isinstance(kind, str):
        raise BadRequest(f"{at}.type", "This has to be the type of an item.")
    if kind == "message":
        into.add(*_read_message(item, at))
    elif is_call(kind):
        _read_call(item, at, into)
    elif kind in _OUTPUTS:
        into.add(Role.TOOL, _read_output(item, at))
    elif kind == "reasoning":
        into.add(Role.ASSISTANT, reasoning_of(item))
    elif kind in KINDS:
        _read_compaction(item, into)
    elif kind in _HOSTED:
        into.add(Role.ASSISTANT, Other(kind=kind, raw=item, is_omissible=True))
        into.left_out.append(f"Items of the type {kind} are OpenAI's own: left out.")
    elif kind not in _READ_ELSEWHERE:
        into.add(*_unread(item, kind))
        into.is_whole = into.is_whole and kind != _REFERENCE
        into.untranslatable = into.untranslatable or (
            f"{at}: an item of the type {kind[:64]} can be read by OpenAI's servers only."
        )


def _unread(item: Object, kind: str) -> tuple[Role, Other]:
    """An item that only OpenAI's servers can read. What it refers to is nearly always what a model
    said, which its client has kept the id of, or what it thought.

    One of a kind that came after this was written is taken for the model's, as nearly all are, and
    for one of those that its reply has, where nobody knew it either. What a client ran is its own.
    """
    if kind.endswith(_RAN):
        return Role.USER, Other(kind=kind, raw=item)
    if kind != _REFERENCE:
        return Role.ASSISTANT, Other(kind=kind, raw=item, is_omissible=True)
    is_thought = (text_in(item, "id") or "").startswith(_THOUGHT)
    return Role.ASSISTANT, Other(kind=kind, raw=item, is_omissible=is_thought)


def _read_message(item: Object, at: str) -> tuple[Role, *tuple[Part, ...]]:
    word = item.get("role")
    role = _ROLES.get(word) if isinstance(word, str) else None
    if role is None:
        raise BadRequest(f"{at}.role", f"This has to be one of {', '.join(_ROLES)}.")
    return (role, *_parts(item.get("content"), f"{at}.content"))


def _read_call(item: Object, at: str, into: Input) -> None:
    if item["type"] in ("function_call", "custom_tool_call"):
        for member in ("call_id", "name"):
            required_text_at(item, member, path=at)
        text_at(item, "namespace", path=at)
    call = call_of(item)
    if call is not None:
        into.add(Role.ASSISTANT, call)


def _read_output(item: Object, at: str) -> ToolResult:
    call_id = item.get("call_id") or item.get("id") or ""
    if not isinstance(call_id, str):
        raise BadRequest(f"{at}.call_id", "This has to be a string.")
    output = item.get("output", item.get("tools"))
    if _is_parts(output):
        found = tuple(_parts(output, f"{at}.output"))
        kept = tuple(part for part in found if isinstance(part, Text | Image))
        if len(kept) == len(found):
            return ToolResult(call_id=call_id, parts=kept)
    image = text_in(output, "image_url") if isinstance(output, dict) else None
    if image is not None:
        return ToolResult(call_id=call_id, parts=(image_from_url(image),))
    text = output if isinstance(output, str) else json_text(output)
    return ToolResult(call_id=call_id, parts=(Text(text=text),) if text else ())


def _is_parts(output: Json) -> bool:
    """Whether an output is content as a message has it, not a tool's own form."""
    return isinstance(output, list) and all(
        isinstance(part, dict) and isinstance(part.get("type"), str) for part in output
    )


def _read_compaction(item: Object, into: Input) -> None:
    summary = summary_in(item)
    if summary is not None:
        into.add(Role.USER, Text(text=summary))
        return
    into.is_whole = False
    into.add(Role.ASSISTANT, Other(kind=COMPACTION, raw=item))
    into.untranslatable = into.untranslatable or (
        "The input holds a compaction that was made elsewhere, which only its maker can read. "
        "Begin a new conversation, or go on with the model that made it."
    )


def _parts(value: Json, at: str) -> Iterator[Part]:
    if value is None:
        return
    if isinstance(value, str):
        if value:
            yield Text(text=value)
        return
    if not isinstance(value, list):
        raise BadRequest(at, "This has to be a string or an array of parts.")
    for index, part in enumerate(value):
        yield _part(object_item(part, f"{at}[{index}]"), f"{at}[{index}]")


def _part(part: Object, at: str) -> Part:
    match part.get("type"):
        case "input_text" | "output_text" | "text" | "summary_text":
            return Text(text=required_text_at(part, "text", path=at))
        case "refusal":
            return Text(text=required_text_at(part, "refusal", path=at))
        case "input_image" | "image_url":
            return _image(part, at)
        case "input_file":
            return _file(part)
        case str(kind):
            return Other(kind=kind, raw=part)
        case _:
            raise BadRequest(f"{at}.type", "This has to be a string.")


def _image(part: Object, at: str) -> Part:
    image = part.get("image_url")
    if isinstance(image, dict):
        image = image.get("url")
    if isinstance(image, str) and image:
        return image_from_url(image, detail=text_in(part, "detail"))
    if text_in(part, "file_id") is None:
        raise BadRequest(f"{at}.image_url", "This has to be an http or data URL, or a file_id.")
    return Other(kind="input_image", raw=part)


def _file(part: Object) -> Other:
    """A file in the chat API's form, which OpenAI-compatible upstreams take, if it has one."""
    if text_in(part, "file_data") is None:
        return Other(kind="input_file", raw=part)
    told = {name: part[name] for name in ("file_data", "filename") if name in part}
    return Other(kind="file", raw={"type": "file", "file": told})
