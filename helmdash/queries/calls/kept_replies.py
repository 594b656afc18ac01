"""Replies that providers keep: who made them, and where they lie."""

from __future__ import annotations

from typing import NamedTuple

from helmdash.core.calls.routes import CallRoute, split_routes
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.records.call_names import find_call, reply_name
from helmdash.records.models import Project


def is_only_project() -> bool:
    """Whether there is one project besides the demo's: then nothing an upstream keeps is of
    another. One query."""
    return Project.objects.filter(is_demo=False)[:2].count() < 2


class Keeper(NamedTuple):
    """An upstream that keeps a reply; is_own: with a key of the project's own."""

    upstream: str
    is_own: bool

    def is_that_of(self, endpoint: Endpoint) -> bool:
        """Whether the endpoint may be asked for the reply.

        A project may have an upstream of its own by the name of a shared one, and end it again:
        then what its server called a reply is not what the shared account keeps by that id.
        """
        return self.upstream == endpoint.name and not (self.is_own and endpoint.is_shared)


def find_keeper(*, project_id: int, reply_id: str) -> Keeper | None:
    """Who keeps a reply of a project's call; None: the project has made none of this id through the
    gateway, or its call is gone. Of an id that both kinds of accounts have, the shared one's. Two
    queries, four where there is none of a shared account."""
    for is_own in (False, True):
        calls = find_call(project_id, reply_name(reply_id, is_own=is_own))
        provider, routes = calls.values_list("provider", "routes").first() or (None, None)
        # What a client reports of its calls proves nothing of who made a reply.
        if provider and CallRoute.GATEWAY in split_routes(routes):
            return Keeper(provider, is_own)
    return None
