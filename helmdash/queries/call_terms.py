"""What calls can be asked for by a query (core.text.query_terms), as conditions of the database.

A term that asks for values of an indexed column is served by its index. Any other (left out, a
range, `has`) is tried on one row after the other, so a list tries it on so many of its newest rows
at a time, and says how far it looked (`MOST_TRIED`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from django.db.models import F, Q

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.lanes import Lane
from helmdash.core.rollups.facts import NO_VARIANT
from helmdash.core.text.query_terms import Field, Kind, Term, is_like
from helmdash.queries.distinct_values import model_keys, values
from helmdash.records.models import Conversation
from helmdash.records.querysets import Column, distinct_values

# Rows on which terms without an index are tried for one page: some tens of milliseconds.
MOST_TRIED: Final = 20_000
ANY_CAUSE: Final = "any"

_HAS: Final[Mapping[str, Q]] = {
    "conversation": Q(conversation_id__isnull=False),
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
}


def _same(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    return {word: (word,) for word in words}


_CAUSES: Final = tuple(cause.value for cause in FailureCause)
# A real one, and what is likely to be one: whoever looks for either looks for both.
_TIMEOUTS: Final = (FailureCause.TIMED_OUT.value, FailureCause.LIKELY_TIMEOUT.value)

CALL_FIELDS: Final = (
    Field(name="level", kind=Kind.WORD, meaning="how full the prompt is", words=_same(Level)),
    Field(name="model", kind=Kind.TEXT, meaning="any spelling, or a part with *"),
    Field(name="client", kind=Kind.TEXT, meaning="program that made the call"),
    Field(
        name="cause",
        kind=Kind.WORD,
        meaning="why it failed",
        words={ANY_CAUSE: _CAUSES, "timeout": _TIMEOUTS, **_same(_CAUSES)},
    ),
    Field(name="has", kind=Kind.WORD, meaning="what there is of it", words=_same(_HAS)),
    Field(name="latency", kind=Kind.DURATION, meaning="request to end of reply"),
    Field(name="ttft", kind=Kind.DURATION, meaning="time to first token"),
    Field(name="prompt", kind=Kind.COUNT, meaning="reported prompt tokens"),
    Field(name="output", kind=Kind.COUNT, meaning="reported output tokens"),
    Field(name="http", kind=Kind.COUNT, meaning="HTTP status"),
    Field(name="finish", kind=Kind.WORD, meaning="finish reason", words=_same(FinishReason)),
    Field(name="purpose", kind=Kind.TEXT, meaning="what it was for"),
    Field(name="pack", kind=Kind.TEXT, meaning="pack that asked"),
    Field(name="conversation", kind=Kind.TEXT, meaning="whole id"),
    Field(name="reason", kind=Kind.WORD, meaning="why unknown", words=_same(HealthReason)),
    Field(name="lane", kind=Kind.WORD, meaning="main or side", words=_same(Lane)),
    Field(name="variant", kind=Kind.TEXT, meaning=f"prompt variant, or {NO_VARIANT}"),
)

# The columns behind fields.
_NUMBERS: Final = {
    "latency": "latency_ms",
    "ttft": "ttft_ms",
    "prompt": "prompt_tokens",
    "output": "completion_tokens",
    "http": "http_status",
}
_WORDS: Final = {
    "level": "level",
    "cause": "cause",
    "finish": "finish_reason",
    "reason": "level_reason",
}
COLUMNS: Final[Mapping[str, Column]] = {
    "model": "model_key",
    "client": "client_name",
    "purpose": "purpose",
    "pack": "pack",
}
_INDEXED: Final = frozenset(
    {"level", "cause", "finish", "model", "client", "purpose", "pack", "conversation"}
)


def is_indexed(term: Term) -> bool:
    """Whether an index finds what the term asks for."""
    return not term.is_negated and term.field in _INDEXED


def conditions(project_id: int, terms: Sequence[Term]) -> Q:
    """What holds of a call for which all terms do. Two queries for each model, one for each pattern
    and each field of conversations."""
    found = Q()
    for term in terms:
        asked = _condition(project_id, term)
        found &= ~asked if term.is_negated else asked
    return found


def offered(project_id: int, field: Field) -> tuple[str, ...]:
    """Values that the field may be asked for: all words, or what was recorded, as many as a list
    offers. One query at most."""
    if field.words:
        return tuple(field.words)
    column = COLUMNS.get(field.name)
    return () if column is None else values(project_id=project_id, column=column)


def _condition(project_id: int, term: Term) -> Q:
    if term.field in _NUMBERS:
        return _between(_NUMBERS[term.field], term)
    if term.field in _WORDS:
        return _any_of(_WORDS[term.field], term.values)
    return _OTHERS[term.field](project_id, term)


def _between(column: str, term: Term) -> Q:
    # What is not known is within no range, and is not left out with one either.
    found = Q(**{f"{column}__isnull": False})
    if term.least is not None:
        found &= Q(**{f"{column}__gte": term.least})
    if term.most is not None:
        found &= Q(**{f"{column}__lte": term.most})
    return found


def _any_of(column: str, wanted: Iterable[str]) -> Q:
    found = Q(**{f"{column}__in": tuple(wanted)})
    if column == "cause":
        # What the partial index leaves out, in its own words: SQLite uses it only then.
        found &= ~Q(cause="")
    return found


def _has(_project_id: int, term: Term) -> Q:
    found = Q()
    for word in term.values:
        found |= _HAS[word]
    return found


def _recorded(project_id: int, term: Term) -> Q:
    """Values of a column, as they were recorded, and patterns of them."""
    column = COLUMNS[term.field]
    wanted: list[str] = []
    for value in term.values:
        if term.field == "model":
            wanted += model_keys(project_id=project_id, model=value)
        else:
            wanted.append(value.strip().lower() if term.field == "client" else value)
    if term.patterns:
        known = distinct_values(project_id, column, most=None)
        wanted += [each for each in known if any(is_like(each, like) for like in term.patterns)]
    return Q(**{f"{column}__in": wanted})


def _of_conversations(project_id: int, term: Term) -> Q:
    named = Conversation.objects.filter(project_id=project_id, name__in=_values(term))
    return Q(conversation_id__in=list(named.values_list("id", flat=True)))


def _of_lane(_project_id: int, term: Term) -> Q:
    # By code that does not know lanes yet: null, which is main.
    is_side = Q(lane__isnull=False, lane=Lane.SIDE.value)
    found = Q(pk__in=())
    for lane in term.values:
        found |= is_side if lane == Lane.SIDE else ~is_side
    return found


def _of_variant(_project_id: int, term: Term) -> Q:
    wanted = _values(term)
    return Q(prompt_variant__in=["" if each == NO_VARIANT else each for each in wanted])


def _values(term: Term) -> tuple[str, ...]:
    """Of a field without patterns a star is a star."""
    return (*term.values, *term.patterns)


_OTHERS: Final[Mapping[str, Callable[[int, Term], Q]]] = {
    "has": _has,
    "conversation": _of_conversations,
    "lane": _of_lane,
    "variant": _of_variant,
    **dict.fromkeys(COLUMNS, _recorded),
}
