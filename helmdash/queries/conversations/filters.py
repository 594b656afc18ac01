"""What a list of conversations is narrowed to, by controls and by a query's terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q, QuerySet

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.text.query_terms import Field, Kind, Term
from helmdash.queries.calls.terms import CAUSE_WORDS, known_of, offered_of
from helmdash.queries.calls.trial_calls import conversations_of_trial
from helmdash.queries.distinct_values import model_keys
from helmdash.queries.lists.leading import led
from helmdash.queries.lists.reach import MOST_TRIED, Reach, reach_of
from helmdash.queries.lists.term_tables import TermTable, exact, same
from helmdash.records.bounds import bounded
from helmdash.records.long_lived import LONG
from helmdash.records.models import Conversation
from helmdash.records.querysets import starts_with

# Which conversations are long-lived is known to within a millisecond.
_SLACK: Final = timedelta(seconds=1)

_HAS: Final[Mapping[str, Q]] = {
    "attention": Q(attention__gt=0),
    "error": Q(failures__gt=0),
    "trim": Q(trims__gt=0),
    # Of unknown level by this reason: a column that is never null.
    "cut": Q(level_reason=HealthReason.SUSPECTED_CUT.value),
    "parent": Q(parent__isnull=False),
    "side": Q(side_calls__isnull=False, side_calls__gt=0),
    "clear": Q(round_number__gt=1),
    "usage": Q(prompt_tokens__isnull=False),
}


def _of_level(_project_id: int, term: Term) -> Q:
    return Q(severity__in=[LEVELS[Level(word)].severity for word in term.values])


def _of_cause(_project_id: int, term: Term) -> Q:
    return Q(latest_cause__isnull=False, latest_cause__in=term.values)


CONVERSATION_TERMS: Final = TermTable(
    fields=(
        Field(name="level", kind=Kind.WORD, meaning="of its newest call", words=same(Level)),
        Field(name="model", kind=Kind.TEXT, meaning="of its newest call; a part with *"),
        Field(name="client", kind=Kind.TEXT, meaning="program that made the newest call"),
        Field(name="has", kind=Kind.WORD, meaning="what there is of it", words=same(_HAS)),
        Field(name="calls", kind=Kind.COUNT, meaning="main calls"),
        Field(name="rounds", kind=Kind.COUNT, meaning="rounds so far"),
        Field(name="failed", kind=Kind.COUNT, meaning="calls that failed"),
        Field(name="trimmed", kind=Kind.COUNT, meaning="calls whose prompt was cut"),
        Field(name="prompt", kind=Kind.COUNT, meaning="prompt tokens of its newest call"),
        Field(
            name="cause",
            kind=Kind.WORD,
            meaning="why the newest call failed",
            words=CAUSE_WORDS,
        ),
        Field(
            name="reason",
            kind=Kind.WORD,
            meaning="why its level is unknown",
            words=same(HealthReason),
        ),
        Field(name="parent", kind=Kind.TEXT, meaning="whole id of the one it is a part of"),
    ),
    numbers={
        "calls": "generation",
        "rounds": "round_number",
        "failed": "failures",
        "trimmed": "trims",
        "prompt": "prompt_tokens",
    },
    words={"reason": "level_reason"},
    has=_HAS,
    others={
        "level": _of_level,
        "cause": _of_cause,
        "model": known_of("model_key"),
        "client": known_of("client_name"),
        "parent": exact("parent"),
    },
    indexed=frozenset({"level", "model", "client", "parent"}),
    offered={"model": offered_of("model_key"), "client": offered_of("client_name")},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFilters:
    """What a list of conversations is narrowed to.

    A conversation belongs to a time range when it overlaps it. `q` is a part of its id; among
    more than MOST_TRIED what it begins with, or a part where none begins so. `model` is any
    spelling of the newest call's, `client` the program that made it. `min_calls`: at least so many.
    `is_one_shot`: with one call only. `trial`: with calls of it, as a list of calls has it. `terms`
    are of CONVERSATION_TERMS.
    """

    level: str | None = None
    model: str | None = None
    q: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    client: str | None = None
    min_calls: int | None = None
    is_one_shot: bool = False
    trial: str | None = None
    terms: tuple[Term, ...] | None = None

    @property
    def near_until(self) -> datetime | None:
        """Before this was the newest call of whoever began before `until`, but for the long-lived
        (queries.conversations.in_range). None: no such bound."""
        if self.until is None:
            return None
        try:
            return self.until + LONG + _SLACK
        except OverflowError:  # after the last year
            return None

    @property
    def is_tried(self) -> bool:
        """Whether terms, a part of an id or the number of calls are tried on one row after the
        other."""
        is_counted = self.is_one_shot or self.least_tried is not None
        return bool(self.q or is_counted or CONVERSATION_TERMS.tried(self.terms))

    @property
    def least_tried(self) -> int | None:
        """`min_calls` where it is tried on each row: of those of two calls there is an index."""
        return self.min_calls if (self.min_calls or 0) > 2 else None

    @property
    def has_several(self) -> bool:
        """Whether more than one of them has an index, so that all but one are tried."""
        given = sum(each is not None for each in (self.level, self.model, self.client))
        return given + len(CONVERSATION_TERMS.served(self.terms)) > 1


def filtered(project_id: int, filters: ConversationFilters) -> QuerySet[Conversation]:
    """The conversations that fit, in no order. Two queries for the names of a model, two for `q`,
    and those of TermTable.conditions."""
    return narrowed(found_by_index(project_id, filters), project_id, filters)


def found_by_index(project_id: int, filters: ConversationFilters) -> QuerySet[Conversation]:
    """The conversations that fit all but what is tried on each, and the end; with `q` all of them,
    or those that begin so."""
    rows = Conversation.objects.filter(project_id=project_id)
    if filters.level is not None:
        rows = rows.filter(severity=LEVELS[Level(filters.level)].severity)
    if filters.model is not None:
        rows = rows.filter(model_key__in=model_keys(project_id=project_id, model=filters.model))
    if filters.client is not None:
        rows = rows.filter(client_name=filters.client.strip().lower())
    if filters.min_calls is not None and filters.min_calls > 1:
        # The words of the partial indexes: SQLite uses them only then, and where they say all,
        # PostgreSQL need not look at the rows.
        rows = rows.filter(generation__gt=1)
    if filters.trial is not None:
        rows = rows.filter(id__in=conversations_of_trial(project_id, filters.trial))
    if filters.since is not None:
        rows = rows.filter(latest_at__gte=filters.since)
    if filters.q and _is_found_by_beginning(project_id, filters.q):
        rows = rows.filter(starts_with("name", filters.q))
    served = CONVERSATION_TERMS.served(filters.terms)
    return rows.filter(CONVERSATION_TERMS.conditions(project_id, served)) if served else rows


def _is_found_by_beginning(project_id: int, text: str) -> bool:
    """Whether only the ids that begin so are looked for: where some do, and all conversations are
    more than what a part is tried on for one page."""
    rows = Conversation.objects.filter(project_id=project_id)
    if not rows.filter(starts_with("name", text)).exists():
        return False
    return bool(rows.order_by("-latest_at", "-id").values("id")[MOST_TRIED : MOST_TRIED + 1])


def begun_before_end(
    rows: QuerySet[Conversation], filters: ConversationFilters
) -> QuerySet[Conversation]:
    """Those of the rows that began before the filters' end, which no index says."""
    return rows if filters.until is None else bounded(rows, "started_at", lt=filters.until)


def narrowed(
    rows: QuerySet[Conversation], project_id: int, filters: ConversationFilters
) -> QuerySet[Conversation]:
    """Those of the rows that fit what is tried on each, and began before the end."""
    rows = begun_before_end(rows, filters)
    if filters.q:
        rows = rows.filter(name__icontains=filters.q)
    if filters.is_one_shot:
        rows = rows.filter(generation=1)
    if filters.least_tried is not None:
        rows = rows.filter(generation__gte=filters.least_tried)
    tried = CONVERSATION_TERMS.tried(filters.terms)
    return rows.filter(CONVERSATION_TERMS.conditions(project_id, tried)) if tried else rows


def looked_through(
    project_id: int,
    filters: ConversationFilters,
    beside: tuple[datetime, int] | None = None,
    *,
    is_ahead: bool = False,
) -> tuple[QuerySet[Conversation], Reach | None]:
    """The conversations that fit, in no order, as far as one page of a list by time looks for them
    that begins at the newest (is_ahead: the oldest), or beside one; and how far that is.

    MOST_TRIED are looked at where something is tried on each. Reach None: all, as nothing is tried
    or there are fewer. Queries: those of `filtered` and queries.lists.leading.
    """
    found = found_by_index(project_id, filters)
    # What is beyond are the long-lived, which are few: all of them are looked at.
    end = filters.near_until
    among = found if end is None else found.filter(latest_at__lt=end)
    if filters.q:
        looked = reach_of(among, "latest_at", beside, is_ahead=is_ahead, most=MOST_TRIED)
    else:
        found, looked = led(
            found,
            "latest_at",
            beside,
            is_tried=filters.is_tried,
            is_ahead=is_ahead,
            most=MOST_TRIED,
            among=among,
        )
    rows = narrowed(found, project_id, filters)
    return looked.within(rows) if looked else rows, looked
