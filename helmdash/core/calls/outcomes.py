"""What came of a call, in the five words its rates are counted by.

Source: helmdeck ADR 053's table, whose "clean" and "truncated" are told apart by finish reason
alone, and helmdeck ADR 051: a 200 with nothing usable in it is a failure, in every rate.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from helmdash.core.calls.failures import FailureCause


class CallOutcome(StrEnum):
    """clean: a reply that could be used. The others say what was wrong; failed: anything else."""

    CLEAN = "clean"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    UNDECODABLE = "undecodable"
    FAILED = "failed"


_OF_CAUSE: Final = {
    FailureCause.LENGTH_TRUNCATED: CallOutcome.TRUNCATED,
    FailureCause.REASONING_EXHAUSTED: CallOutcome.TRUNCATED,
    FailureCause.LIKELY_TIMEOUT: CallOutcome.EMPTY,
    FailureCause.EMPTY_COMPLETION: CallOutcome.EMPTY,
    FailureCause.EMPTY_PLAN: CallOutcome.EMPTY,
    FailureCause.CONSTRAINED_DEADLOCK: CallOutcome.UNDECODABLE,
    FailureCause.UNDECODABLE: CallOutcome.UNDECODABLE,
}


def outcome_of(*, cause: str, status: str) -> CallOutcome:
    """The outcome of a recorded call. cause: "" where none was found; status: as recorded."""
    if cause:
        return _OF_CAUSE.get(FailureCause(cause), CallOutcome.FAILED)
    return CallOutcome.CLEAN if status == "success" else CallOutcome.FAILED
