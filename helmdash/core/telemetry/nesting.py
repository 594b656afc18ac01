"""Calls within calls: of several instrumentations that tell of one request, the innermost counts.

LangChain around OpenAI's library, LiteLLM around a vendor's: each makes a span of its own, one in
the other, with the same tokens. Children end and are exported first, mostly in the same export. So
a span that another call lies in is none. What lies around the calls of earlier exports is known by
names that lead to those (operations.recording.spans.span_names).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from helmdash.core.telemetry.values import Span

SpanKey = tuple[str, str]
"""Trace, span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nameless:
    """A call that was told without its session. id: the call's; awaits: the span that it lies in,
    which has not come yet; agent: the sub-agent that it names all the same, None: none; also_known:
    its other names, which are kept with its conversation."""

    id: str
    awaits: SpanKey
    agent: str | None = None
    also_known: tuple[str, ...] = ()


def innermost(spans: Iterable[Span], calls: Iterable[Span]) -> list[Span]:
    """Those of `calls` that no other call of the export lies in.

    spans: all of the export, calls or not, since a call may lie in another one by way of others.
    """
    parents = {
        # One that says it lies in itself lies in nothing.
        (span.trace_id, span.span_id): span.parent_id if span.parent_id != span.span_id else ""
        for span in spans
    }
    candidates = list(calls)
    around: set[SpanKey] = set()
    for span in candidates:
        parent = parents.get((span.trace_id, span.span_id), "")
        _climb(span.trace_id, parent, parents, around)
    return [span for span in candidates if (span.trace_id, span.span_id) not in around]


def _climb(trace: str, parent: str, parents: dict[SpanKey, str], around: set[SpanKey]) -> None:
    """Note a span and all that lie around it; ends where somebody climbed before."""
    while parent and (trace, parent) not in around:
        around.add((trace, parent))
        parent = parents.get((trace, parent), "")
