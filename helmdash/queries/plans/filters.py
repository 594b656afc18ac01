"""What a list of plans is narrowed to, by controls and by a query's terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.db.models import F, Q, QuerySet

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.planning.plans import Complexity
from helmdash.core.rollups.facts import NO_VARIANT
from helmdash.core.text.query_terms import Field, Kind, Term
from helmdash.queries.calls.terms import CAUSE_WORDS
from helmdash.queries.distinct_values import planned_models
from helmdash.queries.lists.reach import Reach, reach_of
from helmdash.queries.lists.term_tables import (
    YES_OR_NO,
    TermTable,
    exact,
    matches_any,
    recorded,
    same,
)
from helmdash.records.models import PlanRecord, PlanStep
from helmdash.records.querysets import contains, distinct_values, starts_with

# Three tries on a slow free model take five minutes at most; what runs longer has no server.
STALLED_AFTER: Final = timedelta(minutes=15)
# Plans on which terms without an index are tried for one page, or which are sorted: their rows are
# some times as wide as those of calls.
MOST_TRIED: Final = 5_000
OUTCOMES: Final = ("running", "ok", "gap", "partial", "failed")

_HAS: Final[Mapping[str, Q]] = {
    "gap": Q(gap_count__gt=0),
    "catalog": Q(before_bytes__isnull=False, after_bytes__isnull=False),
    "cut": Q(
        before_bytes__isnull=False,
        after_bytes__isnull=False,
        after_bytes__lt=F("before_bytes"),
    ),
    "text": ~Q(intent=""),
    "step": Q(step_count__gt=0),
}


def _of_tools(project_id: int, term: Term) -> Q:
    wanted = list(term.values)
    if term.patterns:
        known = distinct_values(project_id, "entry", of=PlanStep, most=None)
        wanted += [each for each in known if matches_any(each, term.patterns)]
    using = PlanStep.objects.filter(project_id=project_id, entry__in=wanted)
    return Q(id__in=using.values("plan_id"))


def _of_variant(_project_id: int, term: Term) -> Q:
    return Q(prompt_variant__in=["" if each == NO_VARIANT else each for each in term.values])


def _of_followed(_project_id: int, term: Term) -> Q:
    # Where nobody said it, neither is left out with the other.
    return Q(followed__isnull=False, followed__in=[each == "yes" for each in term.values])


def _of_outcomes(now: datetime, _project_id: int, term: Term) -> Q:
    found = Q()
    for outcome in term.values:
        found |= has_outcome(outcome, now)
    return found


class Spellings(tuple[str, ...]):
    """A model as plans have it, in every spelling: a filter for which nothing is looked up."""

    __slots__ = ()


def spelt_out(*, project_id: int, filters: Mapping[str, Any]) -> dict[str, Any]:
    """The same filters for one request that uses them more than once: the model's spellings are
    looked up here and then no more. Three queries with a model, else none."""
    model = filters.get("model")
    if model is None:
        return dict(filters)
    return {**filters, "model": Spellings(spellings(project_id, model))}


def spellings(project_id: int, model: str | Spellings) -> tuple[str, ...]:
    """A model as plans have it. Three queries, none where that was done."""
    if isinstance(model, Spellings):
        return model
    return planned_models(project_id=project_id, model=model)


_known_models = partial(distinct_values, column="model", of=PlanRecord, most=None)

PLAN_TERMS: Final = TermTable(
    fields=(
        Field(name="outcome", kind=Kind.WORD, meaning="what it came to", words=same(OUTCOMES)),
        Field(name="model", kind=Kind.TEXT, meaning="any spelling, or a part with *"),
        Field(name="tool", kind=Kind.TEXT, meaning="entry that some step uses; a part with *"),
        Field(name="kind", kind=Kind.WORD, meaning="plan or route", words=same(("plan", "route"))),
        Field(
            name="variant",
            kind=Kind.WORD,
            meaning="prompt variant",
            words=same((*PromptVariant, NO_VARIANT)),
        ),
        Field(name="cause", kind=Kind.WORD, meaning="why it failed", words=CAUSE_WORDS),
        Field(name="has", kind=Kind.WORD, meaning="what there is of it", words=same(_HAS)),
        Field(name="latency", kind=Kind.DURATION, meaning="question to answer"),
        Field(name="steps", kind=Kind.COUNT, meaning="steps, gaps included"),
        Field(name="gaps", kind=Kind.COUNT, meaning="steps without an entry"),
        Field(name="before", kind=Kind.COUNT, meaning="bytes of the catalog as it was"),
        Field(name="after", kind=Kind.COUNT, meaning="bytes of the catalog as it was shown"),
        Field(
            name="complexity", kind=Kind.WORD, meaning="as the model put it", words=same(Complexity)
        ),
        Field(name="followed", kind=Kind.WORD, meaning="whether anybody said so", words=YES_OR_NO),
        Field(name="caller", kind=Kind.TEXT, meaning="name of the key that asked"),
        Field(name="intent", kind=Kind.TEXT, meaning="hash of what was asked for"),
    ),
    numbers={
        "latency": "latency_ms",
        "steps": "step_count",
        "gaps": "gap_count",
        "before": "before_bytes",
        "after": "after_bytes",
    },
    words={"kind": "kind", "cause": "cause", "complexity": "complexity"},
    has=_HAS,
    others={
        "model": recorded("model", _known_models, spellings),
        "tool": _of_tools,
        "variant": _of_variant,
        "followed": _of_followed,
        "caller": exact("caller"),
        "intent": exact("intent_sha"),
    },
    indexed=frozenset({"model", "tool", "caller", "intent"}),
    offered={
        "model": _known_models,
        "tool": partial(distinct_values, column="entry", of=PlanStep),
        "caller": partial(distinct_values, column="caller", of=PlanRecord),
    },
)


def narrowed(
    *, project_id: int, now: datetime, terms: Sequence[Term] | None = None, **filters: Any
) -> QuerySet[PlanRecord]:
    """The plans that fit the filters (those of `found_by_index`) and the terms (of PLAN_TERMS), in
    no order. Three queries with a model, and those of TermTable.conditions."""
    rows = found_by_index(project_id=project_id, now=now, terms=terms, **filters)
    return fitting(rows, project_id=project_id, now=now, terms=terms)


def fitting(
    rows: QuerySet[PlanRecord],
    *,
    project_id: int,
    now: datetime,
    terms: Sequence[Term] | None,
) -> QuerySet[PlanRecord]:
    """Those of the rows that fit the terms which are tried on each."""
    tried = PLAN_TERMS.tried(terms)
    return rows.filter(_table(now).conditions(project_id, tried)) if tried else rows


def found_by_index(
    *,
    project_id: int,
    now: datetime,
    model: str | Spellings | None = None,
    variant: str | None = None,
    outcome: str | None = None,
    kind: str | None = None,
    tool: str | None = None,
    caller: str | None = None,
    intent: str | None = None,
    q: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    terms: Sequence[Term] | None = None,
) -> QuerySet[PlanRecord]:
    """The plans that fit all but the terms which are tried on each, in no order; a filter that is
    None narrows nothing. Three queries with a model that is not spelt out.

    variant: NO_VARIANT: those for which no call was made. tool: plans with a step that names the
    entry. intent: the hash of what they ask for. q: a part
    of the intent, where it is kept, or the beginning of a plan's id.
    """
    rows = PlanRecord.objects.filter(project_id=project_id)
    stored = "" if variant == NO_VARIANT else variant
    exact = {"prompt_variant": stored, "kind": kind, "caller": caller, "intent_sha": intent}
    rows = rows.filter(**{name: value for name, value in exact.items() if value is not None})
    if model is not None:
        rows = rows.filter(model__in=spellings(project_id, model))
    if outcome is not None:
        rows = rows.filter(has_outcome(outcome, now))
    if tool is not None:
        using = PlanStep.objects.filter(project_id=project_id, entry=tool)
        rows = rows.filter(id__in=using.values("plan_id"))
    if q:
        rows = rows.filter(contains("intent", q) | starts_with("name", q))
    if since is not None:
        rows = rows.filter(started_at__gte=since)
    if until is not None:
        rows = rows.filter(started_at__lt=until)
    served = PLAN_TERMS.served(terms)
    return rows.filter(_table(now).conditions(project_id, served)) if served else rows


def reach(
    *,
    beside: tuple[datetime, int] | None = None,
    is_ahead: bool = False,
    terms: Sequence[Term] | None = None,
    **filters: Any,
) -> Reach | None:
    """How far a list by time looks; filters: as of `narrowed`. None: to the end. One query where
    terms are tried."""
    if not PLAN_TERMS.tried(terms):
        return None
    rows = found_by_index(terms=terms, **filters)
    return reach_of(rows, "started_at", beside, is_ahead=is_ahead, most=MOST_TRIED)


def has_stalled(outcome: str, started_at: datetime, now: datetime) -> bool:
    """Whether a plan says that it runs and can do so no more: its server was stopped."""
    return outcome == "running" and started_at < now - STALLED_AFTER


def has_outcome(outcome: str, now: datetime) -> Q:
    """Plans of an outcome, as it reads by now."""
    line = now - STALLED_AFTER
    if outcome == "failed":
        return Q(outcome="failed") | Q(outcome="running", started_at__lt=line)
    if outcome == "running":
        return Q(outcome="running", started_at__gte=line)
    return Q(outcome=outcome)


def _table(now: datetime) -> TermTable:
    """With the outcomes as they read by now."""
    return replace(PLAN_TERMS, others={**PLAN_TERMS.others, "outcome": partial(_of_outcomes, now)})
