"""What a request names of things that its upstream keeps for an account: where, and what it is.

They are made where the gateway does not see it (or is not told whose they are), so that nobody
knows which project of a shared account has made them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from helmdash.core.upstreams.endpoints import ProviderKind, WireFormat
from helmdash.providers.gemini.parts import camel_members
from helmdash.providers.wire import ChatRequest, Image, ToolResult

Kept = tuple[str, str]

# What OpenAI's servers keep for an account, by the members that name it in a tool they run.
_OF_TOOLS: Final = {
    "vector_store_ids": "vector store",
    "file_ids": "file",
    "file_id": "file",
    "container": "container",
    "container_id": "container",
    "skill_id": "skill",
}
# Tools that the client's program runs: what they hold is the client's own words.
# A tuple: a hostile type may be a list, which no set can be asked for.
_OWN_TOOLS: Final = ("function", "custom", "namespace")
# How deep a hosted tool names things: `environment.skills[0].skill_id`.
_DEEPEST_NAME: Final = 4


def in_responses(parsed: dict[str, Any]) -> Iterator[Kept]:
    """Files, vector stores, containers, drawn images and stored prompts of a Responses request."""
    prompt = parsed.get("prompt")
    if prompt:
        yield "prompt", "prompt"
    for name in ("input", "instructions"):
        for at, item in _objects(parsed.get(name)):
            for member in ("content", "output"):
                said = item.get(member)
                # A screenshot stands alone, other parts in a list.
                for index, part in _objects([said] if isinstance(said, dict) else said):
                    if part.get("file_id"):
                        yield f"{name}[{at}].{member}[{index}].file_id", "file"
            yield from _kept_by_tools(item.get("tools"), f"{name}[{at}].tools")
            # Drawn before, and not said again: OpenAI looks it up.
            is_drawn = item.get("type") == "image_generation_call" and item.get("id")
            if is_drawn and not item.get("result"):
                yield f"{name}[{at}].id", "image"
    yield from _kept_by_tools(parsed.get("tools"), "tools")


def _kept_by_tools(tools: object, where: str) -> Iterator[Kept]:
    for at, tool in _objects(tools):
        if tool.get("type") not in _OWN_TOOLS:
            yield from _named_in(tool, f"{where}[{at}]", _DEEPEST_NAME)


def _named_in(value: dict[str, Any], where: str, levels: int) -> Iterator[Kept]:
    for name, said in value.items():
        what = _OF_TOOLS.get(name)
        if what is not None and said and not isinstance(said, dict):
            yield f"{where}.{name}", what
        elif levels and isinstance(said, dict):
            yield from _named_in(said, f"{where}.{name}", levels - 1)
        elif levels:
            for at, each in _objects(said):
                yield from _named_in(each, f"{where}.{name}[{at}]", levels - 1)


# A result of a tool holds a document, that one pages, and those are images.
_DEEPEST_PART: Final = 3


# The members that `in_messages`, `in_chat` and `in_anthropic` look for, and how a letter of one may
# be spelled instead.
_SIGNS: Final = (b"file_id", b"audio", b"container", rb"\u00")
_SIGNED: Final = frozenset({WireFormat.CHAT, WireFormat.ANTHROPIC})


# All that a part with a text says.
_TEXT_MEMBERS: Final = frozenset({"type", "text", "cache_control"})


def names_none(
    body: bytes, parsed: dict[str, Any], wire: WireFormat, upstream: ProviderKind
) -> bool:
    """Whether a glance shows that a request names nothing, so that nobody has to look through its
    messages. False: it may. `parsed` is what `body` says."""
    if wire not in _SIGNED or upstream is ProviderKind.GEMINI:
        return False
    # A search of the bytes costs ten times as much as a look at messages that hold but a text.
    return _says_texts_alone(parsed) or not any(sign in body for sign in _SIGNS)


def _says_texts_alone(parsed: dict[str, Any]) -> bool:
    messages = parsed.get("messages")
    if "container" in parsed or type(messages) is not list:
        return False
    for message in messages:
        if type(message) is not dict or "audio" in message:
            return False
        content = message.get("content")
        if type(content) is not str and not (content is None or _are_texts(content)):
            return False
    return True


def _are_texts(parts: object) -> bool:
    return type(parts) is list and not [
        part for part in parts if type(part) is not dict or not _TEXT_MEMBERS.issuperset(part)
    ]


def in_messages(parsed: dict[str, Any]) -> Iterator[Kept]:
    """Files that messages of the chat format, or of Anthropic's, name by their ids.

    Either's parts are looked for in both: what nobody can translate is passed as it is.
    """
    for at, message in _objects(parsed.get("messages")):
        found = _file_in(message.get("content"), _DEEPEST_PART)
        if found is not None:
            yield f"messages[{at}].content{found}", "file"


def in_chat(parsed: dict[str, Any]) -> Iterator[Kept]:
    """Speech of a reply before, which OpenAI keeps for an hour."""
    for at, message in _objects(parsed.get("messages")):
        audio = message.get("audio")
        if isinstance(audio, dict) and audio.get("id"):
            yield f"messages[{at}].audio.id", "audio"


def in_anthropic(parsed: dict[str, Any]) -> Iterator[Kept]:
    """The container of a call before, and skills that an account has uploaded."""
    container = parsed.get("container")
    if not isinstance(container, dict):
        if container:
            yield "container", "container"
        return
    if container.get("id"):
        yield "container.id", "container"
    for at, skill in _objects(container.get("skills")):
        if skill.get("type") != "anthropic":  # those are everybody's
            yield f"container.skills[{at}].skill_id", "skill"


def in_gemini(parsed: dict[str, Any], *, host: str | None) -> Iterator[Kept]:
    """Files, cached contents and stores of a Gemini request. host: its upstream's.

    The request to count has the whole one within.
    """
    body = camel_members(parsed)
    inner = body.get("generateContentRequest")
    if isinstance(inner, dict):
        for where, what in in_gemini(inner, host=host):
            yield f"generateContentRequest.{where}", what
    if body.get("cachedContent"):
        yield "cachedContent", "cached content"
    instruction = body.get("systemInstruction")
    contents = [*_objects(body.get("contents"))]
    places = [(f"contents[{at}]", content) for at, content in contents]
    if isinstance(instruction, dict):
        places.append(("systemInstruction", instruction))
    for place, content in places:
        for where in _gemini_files(content.get("parts"), host, _DEEPEST_PART):
            yield f"{place}.parts{where}", "file"
    for at, tool in _objects(body.get("tools")):
        own = camel_members(tool)
        if own.get("fileSearch"):
            yield f"tools[{at}].fileSearch", "file search store"
        if own.get("retrieval"):
            yield f"tools[{at}].retrieval", "data store"


def _gemini_files(parts: object, host: str | None, levels: int) -> Iterator[str]:
    # One part may stand without its list, as protobuf's JSON reader takes it.
    for at, part in _objects([parts] if isinstance(parts, dict) else parts):
        own = camel_members(part)
        file = own.get("fileData")
        if isinstance(file, dict) and is_gemini_file(camel_members(file).get("fileUri"), host=host):
            yield f"[{at}].fileData.fileUri"
        result = own.get("functionResponse")
        if levels and isinstance(result, dict):
            for where in _gemini_files(camel_members(result).get("parts"), host, levels - 1):
                yield f"[{at}].functionResponse.parts{where}"


def in_images(request: ChatRequest, *, host: str | None) -> Iterator[Kept]:
    """Files that a request of another format names as addresses of images, on its way to Gemini."""
    for at, message in enumerate(request.messages):
        for part in message.parts:
            inner = part.parts if isinstance(part, ToolResult) else (part,)
            for each in inner:
                if isinstance(each, Image) and is_gemini_file(each.url, host=host):
                    yield f"image of message {at + 1}", "file"


def is_gemini_file(address: object, *, host: str | None) -> bool:
    """Whether an address is that of something an account keeps, and no public one.

    >>> is_gemini_file("https://generativelanguage.googleapis.com/v1beta/files/abc", host=None)
    True
    >>> is_gemini_file("https://example.org/a.png", host=None)
    False
    """
    if not isinstance(address, str) or not address.strip():
        return False
    try:
        told = urlsplit(address.strip())
        where = told.hostname or ""
    except ValueError:
        return True
    if told.scheme.lower() == "data":
        return False
    if told.scheme.lower() not in ("http", "https") or not where:
        return True  # `files/abc`, `gs://bucket/object`
    is_google = where == "googleapis.com" or where.endswith(".googleapis.com")
    # What lies there is fetched without a key.
    is_public = where == "storage.googleapis.com" or where.endswith(".storage.googleapis.com")
    return where == host or (is_google and not is_public)


def _file_in(parts: object, levels: int) -> str | None:
    for at, part in _objects(parts):
        # Not in results of a server's own tools: those are the server's words, said to it again.
        if part.get("type") == "container_upload" and part.get("file_id"):
            return f"[{at}].file_id"
        for member in ("file", "source"):
            said = part.get(member)
            if isinstance(said, dict) and said.get("file_id"):
                return f"[{at}].{member}.file_id"
        if not levels:
            continue
        source = part.get("source")
        pages = source.get("content") if isinstance(source, dict) else None
        for where, inner in (("content", part.get("content")), ("source.content", pages)):
            found = _file_in(inner, levels - 1)
            if found is not None:
                return f"[{at}].{where}{found}"
    return None


def _objects(value: object) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects in a list, with their places; none where it is no list."""
    for at, each in enumerate(value if isinstance(value, list) else ()):
        if isinstance(each, dict):
            yield at, each
