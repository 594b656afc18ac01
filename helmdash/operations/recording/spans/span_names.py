"""Names of the spans around recorded calls, led on as further spans come.

The id of the span around a recorded call leads to that call, so that it is a duplicate when it is
told as one (core.telemetry.nesting). Where a span comes alone that calls of earlier exports lie in,
what lies around it leads to those as well, whichever process took them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from helmdash.core.telemetry.nesting import SpanKey
from helmdash.core.telemetry.spans import above_of, around_of
from helmdash.core.telemetry.values import Span
from helmdash.operations.database.transactions import write
from helmdash.records.call_names import add_names, find_place_rows

# Of one statement.
_MOST_NAMES = 5_000


def lead_on(*, project_id: int, spans: Mapping[SpanKey, Span]) -> int:
    """Let what lies around the spans of an export lead to the calls that these lead to; how many
    names there were. To be called before its calls are recorded. Idempotent.
    """
    named = {f"otel:{trace}:{own}": span for (trace, own), span in spans.items() if span.parent_id}
    names = list(named)
    return sum(
        _lead_some(project_id, names[start : start + _MOST_NAMES], named, spans)
        for start in range(0, len(names), _MOST_NAMES)
    )


def _lead_some(
    project_id: int,
    names: Sequence[str],
    named: Mapping[str, Span],
    spans: Mapping[SpanKey, Span],
) -> int:
    found = find_place_rows(project_id, names)
    further = [
        (around, row)
        for name, row in found.items()
        for around in around_of(named[name], above_of(named[name], spans))
    ]
    if further:
        write(partial(add_names, further))
    return len(further)
