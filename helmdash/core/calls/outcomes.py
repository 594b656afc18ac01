"""What came of a call, in the five words its rates are counted by.

Source: helmdeck ADR 053's table, whose "clean" and "truncated" are told apart by finish reason
alone, and helmdeck ADR 051: a 200 with nothing usable in it is a failure, in every rate.
"""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from helmdash.core.calls.failures import FailureCause


class CallOutcome(StrEnum):
    """clean: a reply that could be used. The others say what was wrong; failed: anything else."""

    CLEAN = "clean"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    UNDECODABLE = "undecodable"
    FAILED = "failed"


def outcome_of(*, cause: str, status: str) -> CallOutcome:
    """The outcome of a recorded call. cause: "" where none was found; status: as recorded."""
    if cause:
        return _outcome_of_cause(FailureCause(cause))
    return CallOutcome.CLEAN if status == "success" else CallOutcome.FAILED


def causes_of(outcome: CallOutcome) -> tuple[FailureCause, ...]:
    """The causes that lead to an outcome; none for clean calls. A failed call may have none."""
    return tuple(cause for cause in FailureCause if _outcome_of_cause(cause) is outcome)


def _outcome_of_cause(cause: FailureCause) -> CallOutcome:
    match cause:
        case FailureCause.LENGTH_TRUNCATED | FailureCause.REASONING_EXHAUSTED:
            return CallOutcome.TRUNCATED
        case FailureCause.LIKELY_TIMEOUT | FailureCause.EMPTY_COMPLETION | FailureCause.EMPTY_PLAN:
            return CallOutcome.EMPTY
        case FailureCause.CONSTRAINED_DEADLOCK | FailureCause.UNDECODABLE:
            return CallOutcome.UNDECODABLE
        case (
            FailureCause.SAFETY_FILTERED
            | FailureCause.REFUSED
            | FailureCause.CONTEXT_OVERFLOW
            | FailureCause.TIMED_OUT
            | FailureCause.RATE_LIMITED
            | FailureCause.AUTH_FAILED
            | FailureCause.UNREACHABLE
            | FailureCause.UPSTREAM_ERROR
            | FailureCause.UPSTREAM_ERROR_IN_200
            | FailureCause.BAD_REQUEST
            | FailureCause.CLIENT_DISCONNECTED
        ):
            return CallOutcome.FAILED
        case _:
            assert_never(cause)


def says_of_size(cause: FailureCause) -> bool:
    """Whether a failure may come of the prompt's size. What ends a call whatever that is says
    nothing of a budget, either way."""
    match cause:
        case (
            FailureCause.LENGTH_TRUNCATED
            | FailureCause.REASONING_EXHAUSTED
            | FailureCause.CONTEXT_OVERFLOW
            | FailureCause.CONSTRAINED_DEADLOCK
            | FailureCause.UNDECODABLE
            | FailureCause.LIKELY_TIMEOUT
            | FailureCause.EMPTY_COMPLETION
            | FailureCause.EMPTY_PLAN
            | FailureCause.TIMED_OUT
            | FailureCause.UPSTREAM_ERROR
            | FailureCause.UPSTREAM_ERROR_IN_200
            | FailureCause.BAD_REQUEST
        ):
            return True
        case (
            FailureCause.RATE_LIMITED
            | FailureCause.AUTH_FAILED
            | FailureCause.UNREACHABLE
            | FailureCause.CLIENT_DISCONNECTED
            | FailureCause.SAFETY_FILTERED
            | FailureCause.REFUSED
        ):
            return False
        case _:
            assert_never(cause)
