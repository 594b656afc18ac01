"""What a tool is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from helmdash.mcp.visit import Report, Visit

Arguments = Mapping[str, Any]
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """One tool: what agents see of it, the scope its key needs, and what it does.

    `is_slow`: a model answers in between, so its response may have to stream progress. `run`
    raises Problem, or what `problems.problem_of` knows to tell.
    """

    name: str
    description: str
    schema: Schema
    scope: str
    run: Callable[[Visit, Arguments, Report], Awaitable[Mapping[str, object]]]
    is_slow: bool = False


def text(description: str = "") -> Schema:
    """The schema of a string."""
    return _kind("string", description)


def number(description: str = "") -> Schema:
    """The schema of a whole number."""
    return _kind("integer", description)


def free_object(description: str = "") -> Schema:
    """The schema of an object of any members."""
    return _kind("object", description)


def arguments(properties: Mapping[str, Schema], *, required: tuple[str, ...]) -> Schema:
    """The schema of a tool's arguments; without `additionalProperties`, which says nothing new to
    a model and costs its context."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _kind(kind: str, description: str) -> Schema:
    return {"type": kind, "description": description} if description else {"type": kind}
