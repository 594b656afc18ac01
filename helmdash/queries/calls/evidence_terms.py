"""The calls that a learned figure was counted from, as conditions of the database.

Each is what core.rollups.evidence_facts counts, said of rows: so a list has exactly as many calls
as the figure says it was learned from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from django.db.models import Q

from helmdash.core.budgets.health import HealthReason
from helmdash.core.calls.outcomes import CallOutcome, causes_of
from helmdash.core.rollups.evidence_facts import (
    CUT_OFF,
    ENDED,
    LEAST_RATIO_TOKENS,
    NOT_OF_SIZE,
    STRUCTURED,
    SUMMED,
    EvidenceKind,
)
from helmdash.core.text.query_terms import Term

_CUT: Final = Q(level_reason=HealthReason.SUSPECTED_CUT.value)
# A call that was cancelled has no cause, and says as little.
_SAYS_NOTHING: Final = Q(cause__in=[each.value for each in NOT_OF_SIZE]) | Q(
    status="cancelled", cause=""
)
_OF_SIZE: Final = ~Q(purpose__in=SUMMED) & ~_SAYS_NOTHING
_FAILED: Final = Q(cause__in=[each.value for each in causes_of(CallOutcome.FAILED)]) | (
    Q(cause="") & ~Q(status="success")
)
_STRUCTURED: Final = _OF_SIZE & Q(purpose__in=STRUCTURED) & ~_FAILED

_CALLS: Final[Mapping[EvidenceKind, Q]] = {
    EvidenceKind.INPUT_TOKENS: _OF_SIZE & ~_CUT & Q(prompt_tokens__isnull=False),
    EvidenceKind.INPUT_BYTES: _OF_SIZE & Q(sent_bytes__isnull=False),
    EvidenceKind.WINDOW: _CUT & Q(prompt_tokens__isnull=False),
    EvidenceKind.OUTPUT: Q(completion_tokens__isnull=False, finish_reason__in=(*ENDED, CUT_OFF)),
    EvidenceKind.ESTIMATOR: ~_CUT & Q(sent_bytes__gt=0, prompt_tokens__gte=LEAST_RATIO_TOKENS),
    EvidenceKind.STRUCTURED: _STRUCTURED,
    EvidenceKind.CATALOG: _STRUCTURED & Q(trim_after_bytes__isnull=False),
}
_OUTCOMES: Final[Mapping[str, Q]] = {
    CallOutcome.CLEAN: Q(cause="", status="success"),
    CallOutcome.FAILED: _FAILED,
    **{
        each: Q(cause__in=[cause.value for cause in causes_of(each)])
        for each in (CallOutcome.TRUNCATED, CallOutcome.EMPTY, CallOutcome.UNDECODABLE)
    },
}


def of_evidence(_project_id: int, term: Term) -> Q:
    """The calls that a figure is learned from."""
    return _any(_CALLS[EvidenceKind(word)] for word in term.values)


def of_outcome(_project_id: int, term: Term) -> Q:
    """The calls that came to this, as rates count them (core.calls.outcomes)."""
    return _any(_OUTCOMES[word] for word in term.values)


def _any(some: Iterable[Q]) -> Q:
    found = Q(pk__in=())
    for each in some:
        found |= each
    return found
