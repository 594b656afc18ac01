"""Ids in a request of what its upstream keeps: they go on from there for the project that made them
alone.

An upstream keeps responses and files by its account, and all projects share the account of a shared
upstream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from helmdash.core.upstreams.endpoints import Endpoint, WireFormat
from helmdash.gateway.exchange import Exchange
from helmdash.gateway.refusals import Refusal, not_kept
from helmdash.gateway.reply_keepers import ReplyKeepers


async def check_kept_ids(exchange: Exchange, parsed: dict[str, Any], keepers: ReplyKeepers) -> None:
    """Let a placed request go on only from what its project has made. `parsed`: as it came.

    Raises Refusal (400), the same for what is another project's and what is not there;
    DatabaseUnavailable. A translated Responses request is refused whatever it names. An upstream
    with a key of the project's own keeps nothing of others, and where there is no other project
    none does.
    """
    endpoint, wire = exchange.endpoint, exchange.route.client.wire
    if endpoint is None or not endpoint.is_shared:
        return
    if wire is not WireFormat.RESPONSES:
        file = _file_in_messages(parsed)
        if file is not None and not await keepers.is_only_project():
            # Each vendor writes a place in its own way.
            is_dotted = wire is WireFormat.ANTHROPIC
            raise _nobodys(file.replace("[", ".").replace("]", "") if is_dotted else file, "file")
        return
    if not exchange.is_native:
        return
    names_kept = [parsed.get(name) for name in ("conversation", "previous_response_id")]
    kept = next(_kept_by_the_account(parsed), None)
    is_named = any(each is not None for each in names_kept) or any(_references(parsed)) or kept
    if not is_named or await keepers.is_only_project():
        return
    if kept is not None:
        raise _nobodys(*kept)
    # Conversations and items are made where the gateway does not see their ids.
    if parsed.get("conversation") is not None:
        raise not_kept(
            "conversation: Conversation not found. The upstream is shared by projects: send the "
            "input itself, or use an upstream with a key of the project's own.",
            code="conversation_not_found",
            param="conversation",
        )
    for where in _references(parsed):
        raise not_kept(
            f"{where}: Item not found. The upstream is shared by projects: send the item itself, "
            "or use an upstream with a key of the project's own.",
            code="item_not_found",
            param="input",
        )
    previous = parsed.get("previous_response_id")
    if previous is not None and not await _has_made(exchange, endpoint, previous, keepers):
        raise _unknown_previous(previous)


async def _has_made(
    exchange: Exchange, endpoint: Endpoint, reply_id: object, keepers: ReplyKeepers
) -> bool:
    if not isinstance(reply_id, str) or not reply_id or "\x00" in reply_id:
        return False
    project_id = exchange.key_context.caller.project.id
    return await keepers.find(project_id, reply_id) == endpoint.name


def _nobodys(where: str, what: str) -> Refusal:
    return not_kept(
        f"{where}: {what.capitalize()} not found. The upstream is shared by projects, and "
        f"nobody knows whose {what} it is: send what it holds, or use an upstream with a key "
        "of the project's own.",
        code=f"{what.replace(' ', '_')}_not_found",
        param=where.partition("[")[0].partition(".")[0],
    )


def _unknown_previous(reply_id: object) -> Refusal:
    shown = reply_id if isinstance(reply_id, str) and len(reply_id) <= _MOST_SHOWN_CHARS else "…"
    return not_kept(
        f"previous_response_id: Previous response with id '{shown}' not found. Of responses that "
        "this project made through this upstream, and whose calls are still recorded, one can go "
        "on: else send the whole input.",
        code="previous_response_not_found",
        param="previous_response_id",
    )


# Longer than any id that is kept.
_MOST_SHOWN_CHARS = 100


def _references(parsed: dict[str, Any]) -> Iterator[str]:
    """Where items stand that only name another by its id; their type may be left out."""
    for name in ("input", "instructions"):
        items = parsed.get(name)
        for at, item in enumerate(items if isinstance(items, list) else ()):
            if not isinstance(item, dict):
                continue
            kind = item.get("type")
            if kind == "item_reference" or (kind is None and "id" in item and "role" not in item):
                yield f"{name}[{at}]"


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


def _kept_by_the_account(parsed: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Files, vector stores, containers and stored prompts that a request names by their ids: where,
    and what it is. They are made where the gateway does not see it."""
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
    yield from _kept_by_tools(parsed.get("tools"), "tools")


def _kept_by_tools(tools: object, where: str) -> Iterator[tuple[str, str]]:
    for at, tool in _objects(tools):
        if tool.get("type") not in _OWN_TOOLS:
            yield from _named_in(tool, f"{where}[{at}]", _DEEPEST_NAME)


def _named_in(value: dict[str, Any], where: str, levels: int) -> Iterator[tuple[str, str]]:
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


def _file_in_messages(parsed: dict[str, Any]) -> str | None:
    """Where messages of the chat format, or of Anthropic's, first name a file by its id; None:
    nowhere.

    Either's parts are looked for in both: what nobody can translate is passed as it is.
    """
    for at, message in _objects(parsed.get("messages")):
        found = _file_in(message.get("content"), _DEEPEST_PART)
        if found is not None:
            return f"messages[{at}].content{found}"
    return None


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
