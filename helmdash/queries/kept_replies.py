"""Replies that providers keep: who made them, and where they lie."""

from __future__ import annotations

from helmdash.records.call_names import find_call, reply_name


def find_keeper(*, project_id: int, reply_id: str) -> str | None:
    """The upstream that keeps a reply of a project's call; None: the project has made none of this
    id, or its call is gone. Two queries."""
    found = find_call(project_id, reply_name(reply_id)).values_list("provider", flat=True).first()
    return found or None
