"""A client's own request with another beginning, or a text of ours in it.

Done on the client's JSON, by a small table of what each format calls things; then the client's
format reads the result as it reads any request. So what passes through and what is translated
both say the same. What is kept of the client's is kept byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from helmdash.core.care.restarts import HistoryEntry, PartKind, RequestPart, Speaker
from helmdash.providers import anthropic, gemini, ollama, openai, openai_responses
from helmdash.providers.openai_responses.items.calls import call_of
from helmdash.providers.protocols import ClientFormat
from helmdash.providers.shared.bodies import json_text, with_items
from helmdash.providers.wire import Json, Object, ToolCall

_SYSTEM = ("system", "developer")
_TEXT_TYPES = ("text", "input_text", "output_text", "refusal")
# Items of the Responses API that are the model's, besides its messages and calls.
_MODELS_OWN = ("reasoning", "mcp_list_tools", "mcp_approval_request")
# As much of a tool's result as a package could tell, spaces included.
_OUTCOME_CHARS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a format calls things: its list, how an entry is read, how a user's text is written.

    `own` gives an entry without results of tools, which in some formats stand beside texts.
    `group`: where several items of the list are one entry, how many each of them has; it is read as
    an object that holds these `items`. None: each is one.
    """

    member: str
    read: Callable[[Object], HistoryEntry]
    say: Callable[[str], Object]
    own: Callable[[Object], Object]
    group: Callable[[Sequence[Object]], Sequence[int]] | None = None


def form_of(client: ClientFormat) -> Form | None:
    """The form of a client's format; None for one without a history (`/api/generate`)."""
    return _FORMS.get(client.name)


def entries_of(form: Form, parsed: Object) -> list[Object]:
    """The client's list. Its format has read the request, so that it holds objects only.

    Gemini takes one object for a list of one, OpenAI's Responses API a text.
    """
    items = _items(form, parsed)
    if form.group is None:
        return items
    return [{"items": items[at.start : at.stop]} for at in _spans(form, items)]


def _items(form: Form, parsed: Object) -> list[Object]:
    items = parsed.get(form.member)
    if isinstance(items, str):
        return [form.say(items)]
    return [items] if isinstance(items, Mapping) else _objects(items)


def _spans(form: Form, items: Sequence[Object]) -> list[range]:
    """Which items each entry has, for a form that groups them."""
    sizes = [] if form.group is None else form.group(items)
    ends = [*accumulate(sizes)]
    return [range(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def rewritten(
    form: Form, body: bytes, parsed: Mapping[str, Any], steps: Sequence[RequestPart]
) -> tuple[bytes, dict[str, Any]]:
    """The request with these entries instead of its own: its bytes, and what they say."""
    items = entries_of(form, parsed)
    spans = None if form.group is None else _spans(form, _items(form, parsed))
    wanted: list[int | Object] = []
    for step in steps:
        index = step.index
        if step.piece is PartKind.SAID:
            wanted.append(form.say(step.text))
        elif step.piece is PartKind.OWN and items[index] != (own := form.own(items[index])):
            wanted.append(own)
        elif spans is None:
            wanted.append(index)
        else:
            wanted += spans[index]
    if isinstance(parsed.get(form.member), str) and wanted != [0]:
        # A text among items has to be one.
        wanted = [form.say(parsed[form.member]) if item == 0 else item for item in wanted]
    return with_items(body, parsed, form.member, wanted)


# --- OpenAI, and Ollama's /api/chat


def _openai_entry(entry: Object) -> HistoryEntry:
    role = entry.get("role")
    text = _content_text(entry.get("content")) or _text(entry.get("refusal"))
    if role in _SYSTEM:
        return HistoryEntry(speaker=Speaker.SYSTEM, text=text)
    if role == "user":
        blocks = _objects(entry.get("content"))
        return HistoryEntry(
            speaker=Speaker.USER,
            text=text,
            is_own=True,
            parts=tuple(_texts(blocks)),
            has_more=any(not _is_text(block) for block in blocks) or bool(entry.get("images")),
        )
    if role in ("tool", "function"):
        outcome = (_text(entry.get("tool_call_id")), text[:_OUTCOME_CHARS])
        return HistoryEntry(speaker=Speaker.TOOL, text=text, results=1, outcomes=(outcome,))
    if role == "assistant":
        asked = _objects(entry.get("tool_calls")) + _objects([entry.get("function_call")])
        functions = _objects([call.get("function", call) for call in asked])
        return HistoryEntry(
            speaker=Speaker.ASSISTANT,
            text=text,
            calls=_calls(functions, "arguments"),
            call_ids=tuple(_text(call.get("id")) for call in asked),
        )
    return HistoryEntry(speaker=Speaker.OTHER, text=text)


# --- Anthropic


def _anthropic_entry(entry: Object) -> HistoryEntry:
    content = entry.get("content")
    blocks = _objects(content)
    text = _content_text(content)
    role = entry.get("role")
    if role == "assistant":
        uses = [block for block in blocks if block.get("type") == "tool_use"]
        return HistoryEntry(
            speaker=Speaker.ASSISTANT,
            text=text,
            calls=_calls(uses, "input"),
            call_ids=tuple(_text(use.get("id")) for use in uses),
            wants_results_alone=any(map(_is_by_program, uses)),
        )
    if role in _SYSTEM:
        return HistoryEntry(speaker=Speaker.SYSTEM, text=text)
    results = [block for block in blocks if _is_anthropic_result(block)]
    others = [block for block in blocks if not _is_anthropic_result(block)]
    return HistoryEntry(
        speaker=Speaker.TOOL if results else Speaker.USER,
        text=text,
        results=len(results),
        is_own=bool(others) or isinstance(content, str),
        parts=tuple(_texts(others)),
        has_more=any(not _is_text(block) for block in others),
        outcomes=tuple(map(_anthropic_outcome, results)),
    )


def _anthropic_outcome(block: Object) -> tuple[str, str]:
    told = _content_text(block.get("content"))[:_OUTCOME_CHARS]
    failed = "failed: " if block.get("is_error") is True else ""
    return _text(block.get("tool_use_id")), failed + told


def _is_by_program(use: Object) -> bool:
    """Whether code that runs at Anthropic made the call: the results of such calls have to come
    back without any text ("Programmatic tool calling")."""
    caller = use.get("caller")
    return isinstance(caller, dict) and caller.get("type", "direct") != "direct"


def _is_anthropic_result(block: Json) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


# --- Gemini


def _gemini_entry(entry: Object) -> HistoryEntry:
    parts = _objects(entry.get("parts"))
    text = "\n".join(_text(part.get("text")) for part in parts if part.get("thought") is not True)
    if entry.get("role") in ("model", "assistant"):
        calls = [call for part in parts for call in _objects([_either(part, "functionCall")])]
        return HistoryEntry(
            speaker=Speaker.ASSISTANT,
            text=text.strip(),
            calls=_calls(calls, "args"),
            call_ids=tuple(_text(call.get("id")) for call in calls),
        )
    results = [part for part in parts if _is_gemini_result(part)]
    others = [part for part in parts if not _is_gemini_result(part)]
    return HistoryEntry(
        speaker=Speaker.TOOL if results else Speaker.USER,
        text=text.strip(),
        results=len(results),
        is_own=bool(others),
        parts=tuple(_text(part.get("text")) for part in others),
        has_more=any(not isinstance(part.get("text"), str) for part in others),
        outcomes=tuple(map(_gemini_outcome, results)),
    )


def _gemini_outcome(part: Object) -> tuple[str, str]:
    found = _either(part, "functionResponse")
    response = found if isinstance(found, Mapping) else {}
    told = response.get("response")
    # What a function gives stands under "output" or "result", unless it is an object of its own.
    if isinstance(told, Mapping) and len(told) == 1:
        (told,) = told.values()
    return _text(response.get("id")), _written(told)[:_OUTCOME_CHARS]


def _is_gemini_result(part: Json) -> bool:
    return isinstance(part, Mapping) and _either(part, "functionResponse") is not None


def _either(part: Object, name: str) -> Json:
    """Gemini's API takes its names in both spellings."""
    snake = "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)
    return part.get(name, part.get(snake))


# --- OpenAI's Responses API


def _responses_groups(items: Sequence[Object]) -> list[int]:
    """What a model says at once is several items: thoughts, words and calls. They are one entry."""
    sizes: list[int] = []
    was_model = False
    for item in items:
        is_model = _is_models(item)
        if is_model and was_model:
            sizes[-1] += 1
        else:
            sizes.append(1)
        was_model = is_model
    return sizes


def _is_models(item: Object) -> bool:
    kind = item.get("type", "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return kind in _MODELS_OWN or _text(kind).endswith("_call")


def _responses_entry(entry: Object) -> HistoryEntry:
    items = _objects(entry.get("items"))
    if _is_models(items[0]):
        calls = [call for item in items if (call := _responses_call(item)) is not None]
        texts = (_content_text(item.get("content")) for item in items if "role" in item)
        return HistoryEntry(
            speaker=Speaker.ASSISTANT,
            text="\n".join(filter(None, texts)),
            calls=tuple((call.name, call.arguments) for call in calls),
            call_ids=tuple(call.id for call in calls),
        )
    (item,) = items
    if "role" in item:
        return _openai_entry(item)
    if _text(item.get("type")).endswith("_output"):
        output = item.get("output")
        told = _content_text(output) if isinstance(output, list) else _written(output)
        outcome = (_text(item.get("call_id")), told[:_OUTCOME_CHARS])
        return HistoryEntry(speaker=Speaker.TOOL, text=told, results=1, outcomes=(outcome,))
    if item.get("type") == "mcp_approval_response":
        said = "approved" if item.get("approve") is True else "not approved"
        outcome = (_text(item.get("approval_request_id")), said)
        return HistoryEntry(speaker=Speaker.TOOL, text=said, results=1, outcomes=(outcome,))
    # A summary of ours, or tools that came up: like a system turn, it holds for what follows.
    return HistoryEntry(speaker=Speaker.SYSTEM)


def _responses_call(item: Object) -> ToolCall | None:
    """A call that something of the client's answers: of a tool, or for leave to call one."""
    if item.get("type") != "mcp_approval_request":
        return call_of(item)
    name, arguments = _text(item.get("name")), _text(item.get("arguments"))
    return ToolCall(id=_text(item.get("id")), name=name, arguments=arguments)


# --- what they share


def _calls(functions: Sequence[Object], member: str) -> tuple[tuple[str, str], ...]:
    return tuple((_text(one.get("name")), _written(one.get(member))) for one in functions)


def _written(arguments: Json) -> str:
    if isinstance(arguments, str):
        return arguments
    return json_text(arguments) if arguments is not None else ""


def _content_text(content: Json) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_texts(content))


def _texts(content: Json) -> Iterator[str]:
    for part in _objects(content):
        if _is_text(part):
            yield _text(part.get("text")) or _text(part.get("refusal"))


def _is_text(block: Object) -> bool:
    return block.get("type") in _TEXT_TYPES


def _objects(value: Json) -> list[Object]:
    # Read from JSON; asking whether it is a Mapping costs ten times as much, for each message.
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _same(entry: Object) -> Object:
    return entry


def _without(member: str, is_result: Callable[[Json], bool], entry: Object) -> Object:
    parts = entry.get(member)
    if not isinstance(parts, list) or not any(map(is_result, parts)):
        return entry
    return {**entry, member: [part for part in parts if not is_result(part)]}


def _say_content(text: str) -> Object:
    return {"role": "user", "content": text}


def _say_item(text: str) -> Object:
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content}


def _say_parts(text: str) -> Object:
    return {"role": "user", "parts": [{"text": text}]}


_CHAT = Form(member="messages", read=_openai_entry, say=_say_content, own=_same)
_GEMINI = Form(
    member="contents",
    read=_gemini_entry,
    say=_say_parts,
    own=partial(_without, "parts", _is_gemini_result),
)
_FORMS = {
    openai.CLIENT.name: _CHAT,
    ollama.CLIENT.name: _CHAT,
    openai_responses.CLIENT.name: Form(
        member="input",
        read=_responses_entry,
        say=_say_item,
        own=_same,
        group=_responses_groups,
    ),
    anthropic.CLIENT.name: Form(
        member="messages",
        read=_anthropic_entry,
        say=_say_content,
        own=partial(_without, "content", _is_anthropic_result),
    ),
    gemini.CLIENT.name: _GEMINI,
    gemini.ARRAY_CLIENT.name: _GEMINI,
}
