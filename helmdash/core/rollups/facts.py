"""What is counted of a call: the columns that any rollup is made of, and no text of anybody."""

from __future__ import annotations

from typing import Final, NamedTuple

# Anything else callers invent shares one row on the models page, so that the table stays a table.
PURPOSES: Final = ("chat", "plan", "route", "filter", "verify")
OTHER: Final = "other"
# How a filter asks for the calls without a variant of the prompt.
NO_VARIANT: Final = "none"
# Only plans have variants of the prompt: a route's is one, whatever a caller reports.
ROUTE: Final = "route"
# Bands of prompt sizes, by their upper ends: around what a tier C catalog takes (10 KB), and far
# off.
BANDS: Final = (("under 4 KB", 4_096), ("4 to 16 KB", 16_384), ("16 to 64 KB", 65_536))
LARGEST_BAND: Final = "over 64 KB"
BAND_LABELS: Final = (*(label for label, _ in BANDS), LARGEST_BAND)


class CallFacts(NamedTuple):
    """The columns of a call by their names; `quarter` is the quarter-hour it started in.

    They are kept in this order while they wait to be counted: a new one comes last, with a default.
    """

    quarter: int
    model: str
    model_key: str | None
    provider: str
    client_name: str | None
    purpose: str
    prompt_variant: str
    level: str
    level_reason: str
    cause: str
    finish_reason: str
    status: str
    sent_bytes: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    limit_tokens: int | None
    latency_ms: int | None
    ttft_ms: int | None
    estimate_tokens: int | None
    lane: str | None = None
    upstream_model: str | None = None
    response_format: str | None = None
    trim_after_bytes: int | None = None


# As the table of calls names them; the time they are of comes before.
COLUMNS: Final = CallFacts._fields[1:]


def key_of(facts: CallFacts) -> str:
    """What the call's model is one model by."""
    return facts.model_key or facts.model


def grouped_purpose(facts: CallFacts) -> str:
    """The purpose, or the group of those that only some caller knows."""
    return facts.purpose if facts.purpose in PURPOSES else OTHER


def grouped_variant(facts: CallFacts) -> str:
    """The variant of the prompt; empty where none was told, or where it says nothing."""
    return "" if facts.purpose == ROUTE else facts.prompt_variant


def band_of(size: int | None) -> str | None:
    """The band of a prompt of so many bytes; None where they are not known."""
    if size is None:
        return None
    return next((label for label, end in BANDS if size < end), LARGEST_BAND)


def bounds_of_band(label: str) -> tuple[int, int | None]:
    """The bytes from which on, and up to before which, a prompt is in a band; None: any more. The
    label must be one of BAND_LABELS."""
    at = BAND_LABELS.index(label)
    ends = [end for _, end in BANDS]
    return (ends[at - 1] if at else 0), (ends[at] if at < len(ends) else None)
