"""What of a request's body tells an agent's turns from its side calls, taken out of its values."""

from __future__ import annotations

from collections.abc import Iterable

from helmdash.core.agents.values import RequestFacts
from helmdash.providers.wire import ChatRequest, Message, Role, Text

# An agent says in its first system messages what it is; more of them only repeat what they are for.
_SYSTEM_TEXTS = 4
_TEXTS = 16  # of one message


def request_facts(request: ChatRequest) -> RequestFacts:
    """The facts of a chat request, whichever format it came in."""
    mode = request.json_mode
    members = mode.schema.get("properties") if mode is not None and mode.schema else None
    messages = request.messages
    return RequestFacts(
        metadata=request.metadata,
        has_tools=bool(request.tools),
        edits_context="context_management" in request.extra,
        is_fragment=bool(request.is_fragment),
        schema_members=frozenset(members) if isinstance(members, dict) else frozenset(),
        system=_texts((each for each in messages[:_SYSTEM_TEXTS]), Role.SYSTEM, _SYSTEM_TEXTS),
        first_user=_of_first(messages),
        last_user=_of_first(reversed(messages)),
    )


def _of_first(messages: Iterable[Message]) -> tuple[str, ...]:
    found = next((each for each in messages if each.role is Role.USER), None)
    return () if found is None else _texts((found,), Role.USER, _TEXTS)


def _texts(messages: Iterable[Message], role: Role, most: int) -> tuple[str, ...]:
    found = [
        part.text
        for message in messages
        if message.role is role
        for part in message.parts
        if isinstance(part, Text)
    ]
    return tuple(found[:most])
