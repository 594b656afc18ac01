"""Ids in a request of what its upstream keeps: they go on from there for the project that made them
alone.

An upstream keeps responses and files by its account, and all projects share the account of a shared
upstream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind, WireFormat
from helmdash.gateway import kept_objects
from helmdash.gateway.refusals import Refusal, no_thread, not_kept
from helmdash.gateway.reply_keepers import ReplyKeepers
from helmdash.gateway.requests.exchange import Exchange


async def check_kept_ids(exchange: Exchange, parsed: dict[str, Any], keepers: ReplyKeepers) -> None:
    """Let a placed request go on only from what its project has made. `parsed`: as it came.

    Raises Refusal (400; 404 for a thread), the same for what is another project's and what is not
    there; DatabaseUnavailable. A translated Responses request is refused whatever it names, and a
    thread where the upstream has no threads. An upstream with a key of the project's own keeps
    nothing of others, and where there is no other project none does.
    """
    endpoint, wire = exchange.endpoint, exchange.route.client.wire
    if endpoint is None:
        return
    if wire is WireFormat.ANTHROPIC and parsed.get("thread") is not None:
        await _check_thread(exchange, endpoint, parsed["thread"], keepers)
    if not endpoint.is_shared:
        return
    if wire is WireFormat.ANTHROPIC and exchange.is_native and parsed.get("diagnostics"):
        await _check_compared(exchange, endpoint, parsed["diagnostics"], keepers)
    if kept_objects.names_none(exchange.outgoing.body, parsed, wire, endpoint.kind):
        return
    if wire is not WireFormat.RESPONSES or not exchange.is_native:
        named = next(_named_in(exchange, endpoint, parsed), None)
        if named is not None and not await keepers.is_only_project():
            raise _nobodys(*named, is_dotted=wire is WireFormat.ANTHROPIC)
        return
    names_kept = [parsed.get(name) for name in ("conversation", "previous_response_id")]
    kept = next(kept_objects.in_responses(parsed), None)
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


async def _check_thread(
    exchange: Exchange, endpoint: Endpoint, thread: object, keepers: ReplyKeepers
) -> None:
    """Where no such thread is kept, a client is told so by the codes by which Anthropic's SDKs
    send the whole conversation again, or do without threads from then on. Raises Refusal."""
    previous = thread.get("previous_message_id") if isinstance(thread, dict) else None
    if not exchange.is_native:
        if previous is not None:
            raise _no_such_thread()
        raise no_thread(
            "thread: no conversation is kept for this model. Send the whole of it each time, "
            "without this member.",
            code="thread_unsupported_request",
            status=400,
        )
    if previous is None or not endpoint.is_shared or await keepers.is_only_project():
        return
    if not await _has_made(exchange, endpoint, previous, keepers):
        raise _no_such_thread()


async def _check_compared(
    exchange: Exchange, endpoint: Endpoint, diagnostics: object, keepers: ReplyKeepers
) -> None:
    """Anthropic tells in what a prompt differs from that of the reply which this names: whose words
    that were, nobody else may find out by trying. Raises Refusal."""
    named = diagnostics.get("previous_message_id") if isinstance(diagnostics, dict) else None
    if named is None or await keepers.is_only_project():
        return
    if not await _has_made(exchange, endpoint, named, keepers):
        raise not_kept(
            "diagnostics.previous_message_id: Message not found. The upstream is shared by "
            "projects, and this one has made no such message with diagnostics: send null, and the "
            "id of that reply with the next request.",
            code="message_not_found",
            param="diagnostics",
        )


def _no_such_thread() -> Refusal:
    return no_thread(
        "thread.previous_message_id: no thread of this project's goes on from such a message. "
        "Send the whole conversation.",
        code="thread_not_found",
        status=404,
    )


async def _has_made(
    exchange: Exchange, endpoint: Endpoint, reply_id: object, keepers: ReplyKeepers
) -> bool:
    if not isinstance(reply_id, str) or not reply_id or "\x00" in reply_id:
        return False
    project_id = exchange.key_context.caller.project.id
    keeper = await keepers.find(project_id, reply_id)
    return keeper is not None and keeper.is_that_of(endpoint)


def _named_in(
    exchange: Exchange, endpoint: Endpoint, parsed: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """What a request names of its upstream's account: where, and what it is. Not for one that goes
    to a Responses upstream as it is."""
    wire = exchange.route.client.wire
    if wire is not WireFormat.RESPONSES:
        # Parts that nobody translates go to an upstream of another format as they are.
        yield from kept_objects.in_messages(parsed)
    if exchange.is_native and wire is WireFormat.CHAT:
        yield from kept_objects.in_chat(parsed)
    if exchange.is_native and wire is WireFormat.ANTHROPIC:
        yield from kept_objects.in_anthropic(parsed)
    if endpoint.kind is ProviderKind.GEMINI:
        host = urlsplit(endpoint.base_url).hostname
        if wire is WireFormat.GEMINI:
            yield from kept_objects.in_gemini(parsed, host=host)
        elif exchange.request is not None:
            # An address of an image becomes Gemini's address of a file.
            yield from kept_objects.in_images(exchange.request, host=host)


def _nobodys(where: str, what: str, *, is_dotted: bool = False) -> Refusal:
    if is_dotted:  # each vendor writes a place in its own way
        where = where.replace("[", ".").replace("]", "")
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
