"""From a body to calls: decoded, and looked through for what asked a model. In a thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from helmdash.core.calls.capture import CLOCK_AHEAD, Capture
from helmdash.core.telemetry.logs import TimedEvent, calls_of, events_of
from helmdash.core.telemetry.nesting import Nameless, SpanKey, innermost
from helmdash.core.telemetry.spans import above_of, agent_of, capture_of, is_call, missing_around
from helmdash.core.telemetry.values import Span
from helmdash.operations.recording.client_events import MOST_EVENTS
from helmdash.otlp import jsonbody
from helmdash.otlp.export import Export
from helmdash.otlp.signals import Encoding, Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The calls of one export, what else it tells of conversations, and how many records told of no
    call. spans: all of it; nameless: calls that are in no conversation yet. why: what was
    rejected."""

    captures: tuple[Capture, ...]
    spans: Mapping[SpanKey, Span]
    nameless: tuple[Nameless, ...]
    events: tuple[TimedEvent, ...]
    others: int
    rejected: int
    why: str

    def without_events(self, refused: int) -> Reading:
        """The same, where so many events were too many to be kept."""
        sentences = [self.why] if self.rejected else []
        sentences.append(
            f"{refused} of the records are too many: an export, and a conversation, has at most "
            f"{MOST_EVENTS} events of a client besides its calls."
        )
        return replace(
            self,
            others=self.others - refused,
            rejected=self.rejected + refused,
            why=" ".join(sentences),
        )


def read_export(
    signal: Signal,
    encoding: Encoding,
    body: bytes,
    *,
    now: datetime,
) -> Reading:
    """The calls that an export tells of. Raises BadBody, BadExport and TooManyRecords.

    A time that no good clock tells (before 2000, or more than a day ahead of now) counts as not
    told: the record is told of now. Its sender cannot mend it, and what it says of a call holds.
    """
    export = _decode(signal, encoding, body)
    spans: Mapping[SpanKey, Span] = {}
    nameless: list[Nameless] = []
    if signal is Signal.TRACES:
        spans = {(span.trace_id, span.span_id): span for span in export.spans}
        captures, nameless = _of_spans(spans)
        all_records = len(export.spans)
    else:
        captures = calls_of(export.logs)
        all_records = len(export.logs) or export.points
    return Reading(
        captures=tuple(_timely(capture, now) for capture in captures),
        spans=spans,
        nameless=tuple(nameless),
        events=tuple(events_of(export.logs)),
        others=all_records - len(captures),
        rejected=export.rejected,
        why=export.why_rejected,
    )


def _timely(capture: Capture, now: datetime) -> Capture:
    is_ahead = capture.started_at is not None and capture.started_at > now + CLOCK_AHEAD
    return replace(capture, started_at=None) if is_ahead else capture


def _decode(signal: Signal, encoding: Encoding, body: bytes) -> Export:
    if encoding is Encoding.JSON:
        return jsonbody.decode(signal, body)
    # Its classes take a while to load, and most servers never need them.
    from helmdash.otlp import protobuf

    return protobuf.decode(signal, body)


def _of_spans(known: Mapping[SpanKey, Span]) -> tuple[list[Capture], list[Nameless]]:
    """The calls of an export, and those of them whose session a later one may name."""
    calls = [span for span in known.values() if is_call(span)]
    captures: list[Capture] = []
    nameless: list[Nameless] = []
    for span in innermost(known.values(), calls):
        above = above_of(span, known)
        capture = capture_of(span, above)
        captures.append(capture)
        missing = missing_around(span, above) if capture.conversation is None else None
        if missing is not None and capture.id is not None:
            nameless.append(
                Nameless(
                    id=capture.id,
                    awaits=(span.trace_id, missing),
                    agent=agent_of(span, above),
                    also_known=capture.also_known,
                )
            )
    return captures, nameless
