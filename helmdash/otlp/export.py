"""What an export holds, once it is decoded, and the limits that both encodings have in common."""

from __future__ import annotations

from dataclasses import dataclass, field

from helmdash.core.telemetry.values import LogRecord, Span
from helmdash.otlp.signals import TooManyRecords

# A record takes some kilobytes once it is decoded: 100,000 are some hundred megabytes, and two
# hundred times what an SDK sends at once.
MOST_RECORDS = 100_000
# Attributes nest by lists and objects; what is deeper is nobody's fact of a call.
MOST_LEVELS = 32

TRACE_CHARS, SPAN_CHARS = 32, 16
_REASON = "%d of the records have a trace or span id of a wrong length, or one that is all zero."


@dataclass(slots=True)
class Export:
    """The records of one export. points: data points of metrics, which are only counted."""

    spans: list[Span] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    points: int = 0
    rejected: int = 0

    @property
    def why_rejected(self) -> str:
        """A sentence for the sender."""
        return _REASON % self.rejected


def check_records(count: int) -> None:
    """Raises TooManyRecords for more than an export may hold."""
    if count > MOST_RECORDS:
        raise TooManyRecords(
            f"An export may hold at most {MOST_RECORDS} records, this one has {count}. "
            "Send smaller batches."
        )


def is_id(text: str, chars: int) -> bool:
    """Whether a text can be a trace's or a span's id: so many hexadecimals, not all zero."""
    return len(text) == chars and text.strip("0") != ""
