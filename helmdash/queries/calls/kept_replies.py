"""Replies that providers keep: who made them, and where they lie."""

from __future__ import annotations

from helmdash.core.calls.routes import CallRoute, split_routes
from helmdash.records.call_names import find_call, reply_name
from helmdash.records.models import Project


def is_only_project() -> bool:
    """Whether there is one project besides the demo's: then nothing an upstream keeps is of
    another. One query."""
    return Project.objects.filter(is_demo=False)[:2].count() < 2


def find_keeper(*, project_id: int, reply_id: str) -> str | None:
    """The upstream that keeps a reply of a project's call; None: the project has made none of this
    id through the gateway, or its call is gone. Two queries."""
    calls = find_call(project_id, reply_name(reply_id))
    provider, routes = calls.values_list("provider", "routes").first() or (None, None)
    # What a client reports of its calls proves nothing of who made a reply.
    return provider or None if CallRoute.GATEWAY in split_routes(routes) else None
