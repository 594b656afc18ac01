"""What is told about a call to `core.truncation.detector`, and what it answers."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from helmdash.core.truncation.traces import Trace
from helmdash.core.values import quick_value

# Below these a template or one odd message decides the ratio.
LEAST_BYTES = 2_000
LEAST_TOKENS = 300


class CutRule(StrEnum):
    """By which sign a call is taken for cut."""

    HALF_WINDOW = "half_window"  # the count is half of a window and a little
    WHOLE_WINDOW = "whole_window"  # the count is a window exactly
    PINNED = "pinned"  # the count is one that other calls of other sizes have
    FELL = "fell"  # bytes grew, tokens fell
    STALLED = "stalled"  # bytes grew, tokens did not
    STILL_CUT = "still_cut"  # as the calls before
    OUT_OF_BAND = "out_of_band"  # more bytes a token than the model's own calls have
    TRUNCATION_AUTO = "truncation_auto"  # any of these, of a call that asked to be cut


class Sizes(NamedTuple):
    """What is known of one call that succeeded; tokens and bytes as reported, None where not. A
    tuple, for one is made of every call.

    `cached`: what the provider told as cached, whatever its count includes. `window`: tokens the
    server was told to use. `is_blind`: there are images or other media, whose bytes say nothing.
    """

    bytes: int | None
    tokens: int | None
    messages: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    window: int | None = None
    is_blind: bool = False
    is_trimmed: bool = False


@quick_value(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """Why a call is taken for cut. `ratio` bytes a token were expected, over `calls` calls; None
    where the reported count alone told. `window`: tokens; None: none is known."""

    rule: CutRule
    expected_tokens: int | None
    reported_tokens: int
    sent_bytes: int
    ratio: float | None = None
    calls: int = 0
    window: int | None = None


class CutVerdict(NamedTuple):
    """A call's suspicion (None: none), the trace after it, and whether the model's band may learn
    from it."""

    suspicion: Suspicion | None
    trace: Trace
    is_learned: bool


def is_judgeable(sizes: Sizes) -> bool:
    """Whether bytes and tokens can be checked against each other: both known, and neither too
    few."""
    return (
        not sizes.is_blind
        and sizes.bytes is not None
        and sizes.bytes >= LEAST_BYTES
        and sizes.tokens is not None
        and sizes.tokens >= LEAST_TOKENS
    )
