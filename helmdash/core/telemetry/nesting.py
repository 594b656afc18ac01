"""Calls within calls: of several instrumentations that tell of one request, the innermost counts.

LangChain around OpenAI's library, LiteLLM around a vendor's: each makes a span of its own, one in
the other, with the same tokens. Children end and are exported first, mostly in the same export. So
a span that another call lies in is none; and what lies around a call is remembered for exports to
come. So is a call that names no session, since a span around it may.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock

from helmdash.core.telemetry.values import Span

# Of all projects together: a span's ids are some 200 bytes, and a trace is over in minutes.
MOST_REMEMBERED = 20_000

SpanKey = tuple[int, str, str]
"""Project, trace, span."""


@dataclass(frozen=True, slots=True)
class Nameless:
    """A call that was told without its session. id: the call's; agent: the sub-agent that it names
    all the same, None: none; also_known: its other names, which are kept with its conversation."""

    id: str
    agent: str | None = None
    also_known: tuple[str, ...] = ()


class Surroundings:
    """The spans that recorded calls lie in, as far as they are not exported yet.

    Bounded, the oldest are forgotten; of one process, so a restart forgets as well. Threads share
    it.
    """

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._known: OrderedDict[SpanKey, None] = OrderedDict()
        self._waiting: OrderedDict[SpanKey, list[Nameless]] = OrderedDict()
        self._waiting_calls = 0
        self._lock = Lock()

    def __contains__(self, key: SpanKey) -> bool:
        return key in self._known

    def add(self, key: SpanKey) -> None:
        """Remember a span that has not come yet."""
        self._known[key] = None
        self._known.move_to_end(key)
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def await_session(self, key: SpanKey, calls: Sequence[Nameless]) -> None:
        """Remember calls until a span comes that they lie in."""
        with self._lock:
            self._waiting.setdefault(key, []).extend(calls)
            self._waiting_calls += len(calls)
            while self._waiting_calls > self._most:
                _, oldest = self._waiting.popitem(last=False)
                self._waiting_calls -= len(oldest)

    def take_waiting(self, key: SpanKey) -> list[Nameless]:
        """The calls that waited for this span, which is here now. Where they could not be given
        their place after all, they are to wait for it again (`await_session`)."""
        if key not in self._waiting:
            return []
        with self._lock:
            found = self._waiting.pop(key, [])
            self._waiting_calls -= len(found)
            return found


def innermost(
    spans: Iterable[Span],
    calls: Iterable[Span],
    surroundings: Surroundings,
    *,
    project_id: int,
) -> list[Span]:
    """Those of `calls` that no other call lies in, by this export and those before it.

    spans: all of the export, calls or not, since a call may lie in another one by way of others.
    """
    parents = {
        # One that says it lies in itself lies in nothing.
        (span.trace_id, span.span_id): span.parent_id if span.parent_id != span.span_id else ""
        for span in spans
    }
    candidates = list(calls)
    around: set[tuple[str, str]] = set()
    for (trace, own), parent in parents.items():
        # What came before lies in here, so it lies in what is around this, too.
        if (project_id, trace, own) in surroundings:
            around.add((trace, own))
            _climb(trace, parent, parents, around)
    for span in candidates:
        key = (span.trace_id, span.span_id)
        _climb(span.trace_id, parents.get(key, ""), parents, around)
    own_calls = {(span.trace_id, span.span_id) for span in candidates}
    for key in around:
        # What is no call need not be known once it has come; a call may be sent again.
        if key not in parents or key in own_calls:
            surroundings.add((project_id, *key))
    return [span for span in candidates if (span.trace_id, span.span_id) not in around]


def _climb(
    trace: str, parent: str, parents: dict[tuple[str, str], str], around: set[tuple[str, str]]
) -> None:
    """Note a span and all that lie around it; ends where somebody climbed before."""
    while parent and (trace, parent) not in around:
        around.add((trace, parent))
        parent = parents.get((trace, parent), "")
