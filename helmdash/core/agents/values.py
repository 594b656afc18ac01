"""What is told about a request, and what an agent's own words make of it."""

from __future__ import annotations

from collections.abc import Mapping

from helmdash.core.calls.lanes import Lane
from helmdash.core.values import quick_value

# How a context is called that no compaction has opened yet.
FIRST_CONTEXT = "0"


@quick_value(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """What of a request's body tells an agent's side calls and compactions from its turns.

    system, first_user, last_user: the texts of the first system messages, and of the first and the
    last message from the user. schema_members: of the JSON that the reply has to be.
    edits_context: the request tells the provider how to thin its context out. is_fragment: it goes
    on from what the provider keeps, tools and all, so that what it lacks tells nothing.
    """

    metadata: Mapping[str, object] | None = None
    has_tools: bool = False
    edits_context: bool = False
    is_fragment: bool = False
    schema_members: frozenset[str] = frozenset()
    system: tuple[str, ...] = ()
    first_user: tuple[str, ...] = ()
    last_user: tuple[str, ...] = ()


@quick_value(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """What an agent's own words say of one call; None where they are silent.

    part: a sub-agent's own id. context: how the agent's context is called that the call was made
    in: a number that rises with every compaction, or a mark that changes with it.
    """

    conversation: str | None = None
    parent: str | None = None
    part: str | None = None
    purpose: str | None = None
    lane: Lane | None = None
    context: str | None = None
