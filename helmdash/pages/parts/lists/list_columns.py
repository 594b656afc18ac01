"""The columns of lists: those that a table has at first, and those that somebody may add.

A list's name and its outcome or level are always there. Which others are shown is in the address
(`columns=`), so that links, saved views and files show the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final


class Shape(StrEnum):
    """How a value of an added column is written."""

    TEXT = "text"
    COUNT = "count"
    LATENCY = "latency"
    TIME = "time"
    YES_NO = "yes_no"


@dataclass(frozen=True, slots=True)
class ListColumn:
    """One column. paths: what a file has of it, as the item's JSON is laid out. shape None: the
    table has it at first, in a cell of its own making; else an added one, of the one path."""

    name: str
    label: str
    paths: tuple[str, ...]
    shape: Shape | None = None
    order: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it stands on the right."""
        return self.shape not in (None, Shape.TEXT, Shape.YES_NO)

    def value(self, item: object) -> Any:
        """What an item has of an added column; None where that is not known."""
        found = item
        for name in self.paths[0].split("."):
            found = None if found is None else attrgetter(name)(found)
        return found


@dataclass(frozen=True, slots=True)
class ListColumns:
    """Of one list. always: what a file has besides the columns that were chosen."""

    always: tuple[str, ...]
    columns: tuple[ListColumn, ...]

    @property
    def first(self) -> tuple[str, ...]:
        """The names of those that a table has at first."""
        return tuple(each.name for each in self.columns if each.shape is None)

    def shown(self, names: Sequence[str]) -> dict[str, Any]:
        """What a template asks: whether a column of the first is shown, and the added ones."""
        chosen = set(names or self.first)
        return {
            **{name: True for name in self.first if name in chosen},
            "added": [each for each in self.columns if each.shape and each.name in chosen],
        }

    def paths(self, names: Sequence[str]) -> tuple[str, ...]:
        """What a file has where columns were chosen, each path once."""
        chosen = [path for each in self.columns if each.name in names for path in each.paths]
        return tuple(dict.fromkeys((*self.always, *chosen)))


LIST_COLUMNS: Final[Mapping[str, ListColumns]] = {
    "calls": ListColumns(
        ("id", "model", "status", "cause.name", "health.level", "health.reason"),
        (
            ListColumn("conversation", "Conversation", ("conversation", "round", "generation")),
            ListColumn("prompt", "Prompt", ("usage.prompt_tokens", "health.limit_tokens")),
            ListColumn("output", "Output tokens", ("usage.completion_tokens",)),
            ListColumn("ended", "Ended", ("finish_reason", "http_status", "cause.detail")),
            ListColumn("started", "Started", ("started_at", "latency_ms")),
            ListColumn("latency", "Latency", ("latency_ms",), Shape.LATENCY, "latency"),
            ListColumn("ttft", "Time to first token", ("ttft_ms",), Shape.LATENCY, "ttft"),
            ListColumn("cached", "Cached tokens", ("usage.cached_tokens",), Shape.COUNT),
            ListColumn("reasoning", "Reasoning tokens", ("usage.reasoning_tokens",), Shape.COUNT),
            ListColumn("estimate", "Estimated tokens", ("estimate_tokens",), Shape.COUNT),
            ListColumn("bytes", "Sent, bytes", ("sent.bytes",), Shape.COUNT),
            ListColumn("http", "HTTP status", ("http_status",), Shape.COUNT),
            ListColumn("attempt", "Attempt", ("attempt",), Shape.COUNT),
            ListColumn("client", "Client", ("client.name",), Shape.TEXT),
            ListColumn("purpose", "Purpose", ("purpose",), Shape.TEXT),
            ListColumn("pack", "Pack", ("pack",), Shape.TEXT),
            ListColumn("provider", "Provider", ("provider",), Shape.TEXT),
            ListColumn("upstream", "Upstream model", ("upstream_model",), Shape.TEXT),
            ListColumn("variant", "Prompt variant", ("prompt_variant",), Shape.TEXT),
            ListColumn("caller", "Caller", ("caller",), Shape.TEXT),
        ),
    ),
    "conversations": ListColumns(
        ("id", "model", "health.level", "health.reason", "attention"),
        (
            ListColumn("prompt", "Newest prompt", ("health.prompt_tokens", "health.limit_tokens")),
            ListColumn("calls", "Generation", ("generation", "round")),
            ListColumn("failed", "Failed", ("counts.failures",)),
            ListColumn("trimmed", "Trimmed", ("counts.trims",)),
            ListColumn("latest", "Latest", ("latest_at",)),
            ListColumn("rounds", "Rounds", ("counts.rounds",), Shape.COUNT),
            ListColumn("side", "Side calls", ("counts.side_calls",), Shape.COUNT),
            ListColumn("again", "Earlier attempts", ("counts.earlier_attempts",), Shape.COUNT),
            ListColumn("client", "Client", ("client.name",), Shape.TEXT),
            ListColumn("window", "Client window", ("client_window",), Shape.COUNT),
            ListColumn("known", "Known level", ("known_level",), Shape.TEXT),
            ListColumn("parent", "Part of", ("parent",), Shape.TEXT),
            ListColumn("started", "Started", ("started_at",), Shape.TIME),
        ),
    ),
    "plans": ListColumns(
        ("id", "kind", "intent", "intent_sha", "model", "prompt_variant", "outcome", "cause"),
        (
            ListColumn("steps", "Steps", ("steps", "gaps", "tools")),
            ListColumn("before", "Catalog", ("before_bytes", "after_bytes")),
            ListColumn("latency", "Latency", ("latency_ms",)),
            ListColumn("at", "When", ("at",)),
            ListColumn("gaps", "Gaps", ("gaps",), Shape.COUNT),
            ListColumn("complexity", "Complexity", ("complexity",), Shape.TEXT),
            ListColumn("followed", "Followed", ("followed",), Shape.YES_NO),
            ListColumn("caller", "Caller", ("caller",), Shape.TEXT),
        ),
    ),
    "trims": ListColumns(
        ("id", "model", "intent", "fits"),
        (
            ListColumn("saved", "Before and after", ("before_bytes", "after_bytes")),
            ListColumn("before", "Before, bytes", ("before_bytes",)),
            ListColumn("after", "After, bytes", ("after_bytes",)),
            ListColumn("removed", "Removed", ("trim.dropped",)),
            ListColumn("dropped", "Dropped", ("trim.dropped",)),
            ListColumn("at", "When", ("created_at",)),
            ListColumn("catalog", "Catalog", ("catalog_name",), Shape.TEXT),
            ListColumn("caller", "Caller", ("caller",), Shape.TEXT),
        ),
    ),
}
