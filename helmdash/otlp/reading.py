"""From a body to calls: decoded, and looked through for what asked a model. In a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from helmdash.core.calls.capture import CLOCK_AHEAD, Capture
from helmdash.core.telemetry.facts import placed
from helmdash.core.telemetry.logs import TimedEvent, calls_of, events_of
from helmdash.core.telemetry.nesting import Nameless, SpanKey, Surroundings, innermost
from helmdash.core.telemetry.spans import above_of, agent_of, capture_of, is_call, session_of
from helmdash.core.telemetry.values import Span
from helmdash.operations.recording.client_events import MOST_EVENTS
from helmdash.operations.recording.lent_places import LentPlace
from helmdash.otlp import jsonbody
from helmdash.otlp.export import Export
from helmdash.otlp.signals import Encoding, Signal

_Waited = list[tuple[SpanKey, tuple[Nameless, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The calls of one export, what else it tells of conversations, and how many records told of no
    call. lent: where calls of earlier exports belong; waited: which spans those waited for. why:
    what was rejected."""

    captures: tuple[Capture, ...]
    lent: tuple[LentPlace, ...]
    waited: tuple[tuple[SpanKey, tuple[Nameless, ...]], ...]
    events: tuple[TimedEvent, ...]
    others: int
    rejected: int
    why: str

    def give_back(self, surroundings: Surroundings) -> None:
        """Let the calls of earlier exports wait again: this one could not be stored, and comes
        once more."""
        for key, calls in self.waited:
            surroundings.await_session(key, calls)

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
    surroundings: Surroundings,
    *,
    project_id: int,
    now: datetime,
) -> Reading:
    """The calls that an export tells of. Raises BadExport and TooManyRecords.

    A time that no good clock tells (before 2000, or more than a day ahead of now) counts as not
    told: the record is told of now. Its sender cannot mend it, and what it says of a call holds.
    """
    export = _decode(signal, encoding, body)
    lent: list[LentPlace] = []
    waited: _Waited = []
    if signal is Signal.TRACES:
        captures = _of_spans(export, surroundings, project_id, lent, waited)
        all_records = len(export.spans)
    else:
        captures = calls_of(export.logs)
        all_records = len(export.logs) or export.points
    return Reading(
        captures=tuple(_timely(capture, now) for capture in captures),
        lent=tuple(lent),
        waited=tuple(waited),
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


def _of_spans(
    export: Export,
    surroundings: Surroundings,
    project_id: int,
    lent: list[LentPlace],
    waited: _Waited,
) -> list[Capture]:
    """The calls of an export. lent, waited: get what it tells of calls of earlier ones."""
    known = {(span.trace_id, span.span_id): span for span in export.spans}
    calls = [span for span in known.values() if is_call(span)]
    kept = innermost(known.values(), calls, surroundings, project_id=project_id)
    _lend(known, surroundings, project_id, lent, waited)
    captures: list[Capture] = []
    for span in kept:
        above = above_of(span, known)
        capture = capture_of(span, above)
        captures.append(capture)
        if capture.conversation is None and capture.id is not None:
            nameless = Nameless(capture.id, agent_of(span, above), capture.also_known)
            _await_session([span, *above], [nameless], surroundings, project_id)
    return captures


def _lend(
    known: Mapping[tuple[str, str], Span],
    surroundings: Surroundings,
    project_id: int,
    lent: list[LentPlace],
    waited: _Waited,
) -> None:
    """The places of calls that waited for spans of this export."""
    for key, span in known.items():
        waiting = surroundings.take_waiting((project_id, *key))
        if not waiting:
            continue
        waited.append(((project_id, *key), tuple(waiting)))
        around = [span, *above_of(span, known)]
        session = session_of(around)
        if session is None:
            _await_session(around, waiting, surroundings, project_id)
            continue
        for call in waiting:
            place = placed(session, call.agent)
            if place.conversation is not None:
                names = call.also_known
                lent.append(LentPlace(call.id, place.conversation, place.parent, names))


def _await_session(
    spans: Sequence[Span], calls: Sequence[Nameless], surroundings: Surroundings, project_id: int
) -> None:
    """Wait for the span around the last of these, each of which lies in the next."""
    outermost = spans[-1]
    if outermost.parent_id not in ("", *(each.span_id for each in spans)):
        surroundings.await_session((project_id, outermost.trace_id, outermost.parent_id), calls)
