"""Routes: the doors by which HelmDash came to know of a call. One call may come by several."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache


class CallRoute(StrEnum):
    """A door that tells of calls. Stored in this order, with a space between."""

    GATEWAY = "gateway"
    API = "api"
    MCP = "mcp"
    OTLP_LOG = "otlp_log"  # a log record that the program exported
    OTLP_SPAN = "otlp_span"  # a span
    TRANSCRIPT = "transcript"  # what an agent wrote on its user's machine
    PLANNER = "planner"  # HelmDash's own calls, for a plan or a route


def join_routes(routes: Sequence[CallRoute]) -> str | None:
    """The routes as a row holds them; None: not known."""
    return _joined(tuple(routes))


# Asked of every call, and there are few answers.
@lru_cache(maxsize=128)
def _joined(routes: tuple[CallRoute, ...]) -> str | None:
    return " ".join(each.value for each in CallRoute if each in routes) or None


def split_routes(stored: str | None) -> tuple[str, ...]:
    """The words that `join_routes` wrote; those of a newer release are words, too."""
    return tuple(stored.split()) if stored else ()
