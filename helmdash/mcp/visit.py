"""A visit: one request, with who asks and what there is to answer it with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from helmdash.mcp.threads import Threads
from helmdash.queries.access.access import Caller, ProjectInfo
from helmdash.upstream.sharing import Shared

# Where it stands in the scope of a request, from the door to the tool.
VISIT_KEY = "helmdash.visit"
# How far the work is: percent and a sentence. Does nothing for a client that did not ask.
Report = Callable[[int, str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What a tool or a resource needs to know."""

    caller: Caller
    threads: Threads
    shared: Shared

    @property
    def project(self) -> ProjectInfo:
        """The project of the key: a request cannot name another."""
        return self.caller.project
