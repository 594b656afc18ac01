"""What a list of fits is narrowed to, by controls and by a query's terms.

Fits have no index but their time: the newest of them are read, and looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from helmdash.core.text.query_terms import Field, Kind, Term
from helmdash.queries.budgets import budgets
from helmdash.queries.lists.term_tables import matches_any, same
from helmdash.records.models import Fit
from helmdash.records.rollups.fit_facts import STEPS, read_steps, steps_of


class TrimOutcome(StrEnum):
    """What a fit came to."""

    CUT = "cut"
    WHOLE = "whole"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimFilters:
    """What the list is narrowed to; None leaves a filter out.

    `model` is any spelling of it, `client` the caller as its fit named it, `cut` the label of a
    step (core.catalog.compaction). `q` is the beginning of an id or a part of the intent, where it
    is kept. `terms` are of TRIM_FIELDS.
    """

    model: str | None = None
    client: str | None = None
    catalog: str | None = None
    cut: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    q: str | None = None
    terms: tuple[Term, ...] | None = None


class FitFacts(NamedTuple):
    """A fit without its entries."""

    id: int
    name: str
    created_at: datetime
    model: str
    intent: str
    client: str
    catalog: str
    before_bytes: int
    after_bytes: int
    fits: bool
    steps: tuple[tuple[str, int, int], ...] = ()

    @property
    def outcome(self) -> TrimOutcome:
        """What it came to."""
        if not self.fits:
            return TrimOutcome.OVER
        return TrimOutcome.CUT if self.after_bytes != self.before_bytes else TrimOutcome.WHOLE

    @property
    def saved_bytes(self) -> int:
        """What was cut."""
        return self.before_bytes - self.after_bytes

    @property
    def labels(self) -> tuple[str, ...]:
        """What it was cut by."""
        return tuple(label for label, *_ in self.steps)


# In the order of FitFacts.
FACT_COLUMNS: Final = (
    "id",
    "name",
    "created_at",
    "model",
    "intent",
    "caller",
    "catalog_name",
    "before_bytes",
    "after_bytes",
    "fits",
    STEPS,
)
Test = Callable[[FitFacts], bool]

TRIM_FIELDS: Final = (
    Field(
        name="outcome",
        kind=Kind.WORD,
        meaning="cut, whole, or over: too large even so",
        words=same(TrimOutcome),
    ),
    Field(name="model", kind=Kind.TEXT, meaning="any spelling, or a part with *"),
    Field(name="client", kind=Kind.TEXT, meaning="name of the key that asked"),
    Field(name="catalog", kind=Kind.TEXT, meaning="name of the catalog"),
    Field(name="cut", kind=Kind.TEXT, meaning="label of a step, or a part with *"),
    Field(name="before", kind=Kind.COUNT, meaning="bytes of the catalog as it was"),
    Field(name="after", kind=Kind.COUNT, meaning="bytes of the catalog as it was sent"),
    Field(name="saved", kind=Kind.COUNT, meaning="bytes that were cut"),
)
_NUMBERS: Final[Mapping[str, Callable[[FitFacts], int]]] = {
    "before": lambda fit: fit.before_bytes,
    "after": lambda fit: fit.after_bytes,
    "saved": lambda fit: fit.saved_bytes,
}
_TEXTS: Final[Mapping[str, Callable[[FitFacts], tuple[str, ...]]]] = {
    "outcome": lambda fit: (fit.outcome.value,),
    "client": lambda fit: (fit.client,),
    "catalog": lambda fit: (fit.catalog,),
    "cut": lambda fit: fit.labels,
}


def facts(row: tuple[Any, ...]) -> FitFacts:
    """The values of FACT_COLUMNS."""
    return FitFacts._make((*row[:-1], read_steps(row[-1])))


def facts_of_row(row: Fit) -> FitFacts:
    """The same of a whole row."""
    plain = (getattr(row, str(name)) for name in FACT_COLUMNS[:-1])
    return FitFacts._make((*plain, tuple(steps_of(row.trim.get("steps")))))


def matcher(project_id: int, filters: TrimFilters) -> Test:
    """Whether a fit is of the list. One query at most, for the spellings of models."""
    tests = [
        *_of_controls(filters),
        *_of_models(project_id, filters),
        *(_of_term(term) for term in filters.terms or () if term.field != "model"),
    ]
    return lambda fit: all(test(fit) for test in tests)


def _of_controls(filters: TrimFilters) -> Iterable[Test]:
    for name in ("client", "catalog", "outcome", "cut"):
        value = getattr(filters, name)
        if value is not None:
            yield _with(_TEXTS[name], value)
    if filters.q:
        text = filters.q.strip()
        yield lambda fit: fit.name.startswith(text) or text.lower() in fit.intent.lower()


def _with(told: Callable[[FitFacts], tuple[str, ...]], value: str) -> Test:
    return lambda fit: value in told(fit)


def _of_models(project_id: int, filters: TrimFilters) -> Sequence[Test]:
    """By any spelling; each that comes up is looked up once."""
    terms = [term for term in filters.terms or () if term.field == "model"]
    if filters.model is None and not terms:
        return ()
    key_of = budgets.table(project_id=project_id).key_of
    keys: dict[str, str] = {}

    def key(fit: FitFacts) -> str:
        return keys.get(fit.model) or keys.setdefault(fit.model, key_of(fit.model))

    def among(wanted: frozenset[str], patterns: Sequence[str]) -> Test:
        return lambda fit: (
            key(fit) in wanted
            or matches_any(fit.model, patterns)
            or matches_any(key(fit), patterns)
        )

    tests = [
        _turned(among(frozenset(map(key_of, term.values)), term.patterns), term) for term in terms
    ]
    if filters.model is not None:
        tests.append(among(frozenset({key_of(filters.model)}), ()))
    return tests


def _of_term(term: Term) -> Test:
    number = _NUMBERS.get(term.field)
    if number is not None:
        return _turned(lambda fit: _is_between(number(fit), term), term)
    told = _TEXTS[term.field]
    wanted = frozenset(term.values)
    return _turned(
        lambda fit: any(each in wanted or matches_any(each, term.patterns) for each in told(fit)),
        term,
    )


def _turned(test: Test, term: Term) -> Test:
    return (lambda fit: not test(fit)) if term.is_negated else test


def _is_between(number: int, term: Term) -> bool:
    return (term.least is None or number >= term.least) and (
        term.most is None or number <= term.most
    )
