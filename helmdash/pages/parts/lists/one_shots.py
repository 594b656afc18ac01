"""One-shot conversations of a list, as one line for each client that made several.

Title makers, hooks and scripts make a conversation of every call; a list of those hides what
somebody looks for. What needs somebody keeps a line of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import QueryDict
from django.urls import reverse

from helmdash.queries.conversations.conversations import ConversationView

# Two lines are read as quickly as one that stands for both.
_LEAST = 3
# Who asks for one of these wants to see every line.
_ONE_BY_ONE = ("q", "client", "min_calls")


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShots:
    """The one-shot conversations of a client among those of a page; url: the list of them alone."""

    client: str
    count: int
    latest_at: datetime
    url: str


def grouped(
    items: Sequence[ConversationView], asked: QueryDict
) -> tuple[ConversationView | OneShots, ...]:
    """The lines of a list, in its order: a group stands where its first one stood.

    asked: the filters of the list, which go on in a group's link.
    """
    if any(asked.get(name) for name in _ONE_BY_ONE):
        return tuple(items)
    groups: defaultdict[str, list[ConversationView]] = defaultdict(list)
    for item in items:
        groups[_client(item)].append(item)
    lines: dict[str, ConversationView | OneShots] = {}
    for item in items:
        client = _client(item)
        if client and len(groups[client]) >= _LEAST:
            lines.setdefault(f"client {client}", _group(client, groups[client], asked))
        else:
            lines[f"id {item.id}"] = item
    return tuple(lines.values())


def _client(item: ConversationView) -> str:
    """The client of a one-shot conversation that needs nobody; "" for every other one."""
    is_quiet = not item.attention and not item.failures and not item.trims
    is_one_shot = item.generation == 1 and item.round_number == 1
    return item.client.name if item.client and is_quiet and is_one_shot else ""


def _group(client: str, members: Sequence[ConversationView], asked: QueryDict) -> OneShots:
    wanted = asked.copy()
    wanted.pop("cursor", None)
    wanted["client"], wanted["min_calls"] = client, "1"
    return OneShots(
        client=client,
        count=len(members),
        latest_at=max(item.latest_at for item in members),
        url=f"{reverse('conversations')}?{wanted.urlencode()}",
    )
