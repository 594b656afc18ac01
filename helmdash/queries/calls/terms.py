"""What calls can be asked for by a query (core.text.query_terms), as conditions of the database."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from django.db.models import F, Q

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.outcomes import CallOutcome
from helmdash.core.rollups.evidence_facts import EvidenceKind
from helmdash.core.rollups.facts import NO_VARIANT, ROUTE
from helmdash.core.text.query_terms import Field, Kind, Term
from helmdash.queries.calls.evidence_terms import of_evidence, of_outcome
from helmdash.queries.distinct_values import model_keys, values
from helmdash.queries.lists.term_tables import (
    Asking,
    TermTable,
    exact,
    recorded,
    same,
    whole_values,
)
from helmdash.records.models import Conversation
from helmdash.records.querysets import Column, distinct_values

ANY_CAUSE: Final = "any"

_HAS: Final[Mapping[str, Q]] = {
    "conversation": Q(conversation_id__isnull=False),
    # Said of both, or calls that named none would be lost when it is left out.
    "client": Q(client_name__isnull=False) & ~Q(client_name=""),
    "error": ~Q(cause=""),
    # Said of both, or what is unknown of either would be lost when it is left out.
    "trim": Q(
        trim_before_bytes__isnull=False,
        trim_after_bytes__isnull=False,
        trim_after_bytes__lt=F("trim_before_bytes"),
    ),
    # Only an unknown level has a reason; the level has an index.
    "cut": Q(level=Level.UNKNOWN.value, level_reason=HealthReason.SUSPECTED_CUT.value),
    "tools": Q(sent_tools_bytes__gt=0),
    "usage": Q(prompt_tokens__isnull=False),
    # Unknown is said too, or it would be lost when it is left out.
    "cached": Q(cached_tokens__isnull=False, cached_tokens__gt=0),
    "json": Q(response_format__istartswith="json"),
    "reasoning": Q(reasoning_tokens__isnull=False, reasoning_tokens__gt=0),
}

_CAUSES: Final = tuple(cause.value for cause in FailureCause)
# A real one, and what is likely to be one: whoever looks for either looks for both.
_TIMEOUTS: Final = (FailureCause.TIMED_OUT.value, FailureCause.LIKELY_TIMEOUT.value)
# The words of a field of causes, on whatever list.
CAUSE_WORDS: Final = {ANY_CAUSE: _CAUSES, "timeout": _TIMEOUTS, **same(_CAUSES)}

CALL_FIELDS: Final = (
    Field(name="level", kind=Kind.WORD, meaning="how full the prompt is", words=same(Level)),
    Field(name="model", kind=Kind.TEXT, meaning="any spelling, or a part with *"),
    Field(name="client", kind=Kind.TEXT, meaning="program that made the call"),
    Field(name="cause", kind=Kind.WORD, meaning="why it failed", words=CAUSE_WORDS),
    Field(name="has", kind=Kind.WORD, meaning="what there is of it", words=same(_HAS)),
    Field(name="latency", kind=Kind.DURATION, meaning="request to end of reply"),
    Field(name="ttft", kind=Kind.DURATION, meaning="time to first token"),
    Field(name="prompt", kind=Kind.COUNT, meaning="reported prompt tokens"),
    Field(name="output", kind=Kind.COUNT, meaning="reported output tokens"),
    Field(name="http", kind=Kind.COUNT, meaning="HTTP status"),
    Field(name="finish", kind=Kind.WORD, meaning="finish reason", words=same(FinishReason)),
    Field(name="purpose", kind=Kind.TEXT, meaning="what it was for"),
    Field(name="pack", kind=Kind.TEXT, meaning="pack that asked"),
    Field(name="conversation", kind=Kind.TEXT, meaning="whole id"),
    Field(name="reason", kind=Kind.WORD, meaning="why unknown", words=same(HealthReason)),
    Field(name="lane", kind=Kind.WORD, meaning="main or side", words=same(Lane)),
    Field(name="upstream", kind=Kind.TEXT, meaning="whole name of who answered"),
    Field(name="variant", kind=Kind.TEXT, meaning=f"prompt variant, or {NO_VARIANT}"),
    Field(name="outcome", kind=Kind.WORD, meaning="what came of it", words=same(CallOutcome)),
    Field(name="key", kind=Kind.TEXT, meaning="model, exactly as figures name it"),
    Field(name="spelt", kind=Kind.TEXT, meaning="model, exactly as it was asked for"),
    Field(name="sent", kind=Kind.COUNT, meaning="bytes sent"),
    Field(name="catalog", kind=Kind.COUNT, meaning="bytes of the fitted catalog"),
    Field(
        name="evidence", kind=Kind.WORD, meaning="figure learned from it", words=same(EvidenceKind)
    ),
)


def known_of(column: Column) -> Asking:
    """Values of a column of calls, or of what has the same of its newest call; of models any
    spelling. One query for a pattern, two for each model."""
    known = partial(distinct_values, column=column, most=None)
    if column == "model_key":
        return recorded(
            column, known, lambda project_id, value: model_keys(project_id=project_id, model=value)
        )
    if column == "client_name":
        return recorded(column, known, lambda _project_id, value: (value.strip().lower(),))
    return recorded(column, known)


def offered_of(column: Column) -> partial[tuple[str, ...]]:
    """What a bar offers of a column of calls."""
    return partial(_offered, column)


def _offered(column: Column, project_id: int) -> tuple[str, ...]:
    return values(project_id=project_id, column=column)


def _of_cause(_project_id: int, term: Term) -> Q:
    # What the partial index leaves out, in its own words: SQLite uses it only then.
    return Q(cause__in=term.values) & ~Q(cause="")


def _of_conversations(project_id: int, term: Term) -> Q:
    named = Conversation.objects.filter(project_id=project_id, name__in=whole_values(term))
    return Q(conversation_id__in=list(named.values_list("id", flat=True)))


def _of_lane(_project_id: int, term: Term) -> Q:
    # By code that does not know lanes yet: null, which is main.
    is_side = Q(lane__isnull=False, lane=Lane.SIDE.value)
    found = Q(pk__in=())
    for lane in term.values:
        found |= is_side if lane == Lane.SIDE else ~is_side
    return found


def _of_upstream(_project_id: int, term: Term) -> Q:
    return Q(provider__in=whole_values(term))


def _of_variant(_project_id: int, term: Term) -> Q:
    # As figures group them: a route has none, whatever was reported.
    wanted = set(whole_values(term))
    found = Q(prompt_variant__in=wanted - {NO_VARIANT}) & ~Q(purpose=ROUTE)
    return found | Q(prompt_variant="") | Q(purpose=ROUTE) if NO_VARIANT in wanted else found


_COLUMNS: Final[Mapping[str, Column]] = {
    "model": "model_key",
    "client": "client_name",
    "purpose": "purpose",
    "pack": "pack",
}

CALL_TERMS: Final = TermTable(
    fields=CALL_FIELDS,
    numbers={
        "latency": "latency_ms",
        "ttft": "ttft_ms",
        "prompt": "prompt_tokens",
        "output": "completion_tokens",
        "http": "http_status",
        "sent": "sent_bytes",
        "catalog": "trim_after_bytes",
    },
    words={"level": "level", "finish": "finish_reason", "reason": "level_reason"},
    has=_HAS,
    others={
        "cause": _of_cause,
        "conversation": _of_conversations,
        "lane": _of_lane,
        "upstream": _of_upstream,
        "variant": _of_variant,
        "outcome": of_outcome,
        "evidence": of_evidence,
        "key": exact("model_key"),
        "spelt": exact("model"),
        **{name: known_of(column) for name, column in _COLUMNS.items()},
    },
    indexed=frozenset(
        {"level", "cause", "finish", "model", "key", "client", "purpose", "pack", "conversation"}
    ),
    offered={name: offered_of(column) for name, column in _COLUMNS.items()},
)
