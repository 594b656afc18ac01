"""A model by hand: `Replies` answers one completion after the other and keeps what it was sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import async_to_sync
from django.utils import timezone

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.completion import Completion, UnknownModel
from helmdash.operations.planning import Ask, Made, make_plan
from helmdash.queries.access.access import ProjectInfo
from tests.factories import NOW

CATALOG: dict[str, Any] = {
    "packs": [
        {
            "name": "web.scrape",
            "description": "Fetch a page as text.",
            "input_schema": {
                "type": "object",
                "properties": {"url": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["url"],
            },
        },
        {"name": "blog.publish", "description": "Publish a blog post."},
        {"name": "image.generate", "description": "Draw an illustration from a text."},
        {"name": "helmdeck.plan", "description": "Plans."},
    ],
    "pipelines": [
        {
            "id": "builtin.scrape-blog",
            "name": "Page to blog",
            "description": "Fetch a page and publish a post about it.",
            "metadata": {"supersedes": ["web.scrape", "blog.publish"]},
        }
    ],
}


def steps(*tools: str, **more: Any) -> str:
    """A sound plan of these tools."""
    listed = [
        {"order": at, "tool": tool, "args": {}, "rationale": "It is needed here."}
        for at, tool in enumerate(tools, start=1)
    ]
    return json.dumps({"steps": listed, "complexity": "pack-chain", "reasoning": "-", **more})


@dataclass(slots=True)
class Replies:
    """A `Complete`: gives the next reply each time, the last one for ever."""

    replies: Sequence[str | Mapping[str, Any]]
    sent: list[Completion] = field(default_factory=list)
    unserved: str = ""  # a model that no upstream serves

    async def __call__(self, completion: Completion) -> Capture:
        if completion.model == self.unserved:
            raise UnknownModel(completion.model)
        reply = self.replies[min(len(self.sent), len(self.replies) - 1)]
        self.sent.append(completion)
        told = {"content": reply} if isinstance(reply, str) else dict(reply)
        return Capture(
            **{
                "id": completion.call_id,
                "model": completion.model,
                "provider": "test",
                "usage": {"prompt_tokens": 900, "completion_tokens": 80},
                "finish_reason": "stop",
                "http_status": 200,
                "status": "success",
                "latency_ms": 40,
                "started_at": NOW,
                "raw_content_len": len(told.get("content") or ""),
                **told,
            }
        )


def tell(project: ProjectInfo, replies: Replies, *, caller: str = "owner", **over: Any) -> Made:
    """Make a plan (or a route) with those replies."""
    given: dict[str, Any] = {
        "kind": "plan",
        "user_intent": "Fetch the page and publish a blog post about it",
        "model": "openai/gpt-4o",
        "catalog": CATALOG,
        **over,
    }
    return async_to_sync(make_plan)(
        project=project, ask=Ask(**given), caller=caller, complete=replies, clock=timezone.now
    )
