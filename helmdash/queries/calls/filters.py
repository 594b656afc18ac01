"""What a list of calls is narrowed to, and the rows that are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection
from django.db.models import Q, QuerySet

from helmdash.core.budgets.levels import Level
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.lanes import Lane
from helmdash.core.rollups.facts import NO_VARIANT, OTHER, PURPOSES, ROUTE, bounds_of_band
from helmdash.core.text.query_terms import Term
from helmdash.queries.calls.joint_months import within_joint_months
from helmdash.queries.calls.terms import ANY_CAUSE, CALL_TERMS
from helmdash.queries.calls.trial_calls import calls_of_trial
from helmdash.queries.distinct_values import model_keys
from helmdash.queries.lists.by_value import by_value
from helmdash.queries.lists.leading import led
from helmdash.queries.lists.reach import MOST_TRIED, Reach
from helmdash.records.bounds import bounded
from helmdash.records.call_names import Place, calls_at, find_beginning, places_of
from helmdash.records.conversation_names import named
from helmdash.records.models import Call, Conversation
from helmdash.records.querysets import calls_of, starts_with

# A search by a beginning that fits more conversations looks at the newest of them.
_SEARCHED_CONVERSATIONS = 100
# So many calls are found and sorted in some tens of milliseconds.
_SORTED_CALLS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFilters:
    """What a list of calls is narrowed to; None leaves a filter out.

    `model` is any spelling of it; `client` the name of a program (core.conversations.clients).
    `q` is the beginning of a call's, a conversation's or a correlation id. `cause` may be
    ANY_CAUSE: every call that failed. `purpose` OTHER: all that are none of PURPOSES; `variant`
    NO_VARIANT: those without, as routes are. `size` is one of BAND_LABELS, of the bytes sent.
    `tokens_over`: prompts that were reported with more tokens. `trial`: the number of a trial, and
    with `:today` or `:suggested` behind it one arm of it (core.budgets.trials.TRIAL_PATTERN).
    `terms` are of call_terms.CALL_TERMS.
    """

    conversation: str | None = None
    model: str | None = None
    level: str | None = None
    cause: str | None = None
    finish_reason: str | None = None
    purpose: str | None = None
    pack: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    q: str | None = None
    level_reason: str | None = None
    client: str | None = None
    lane: str | None = None
    size: str | None = None
    variant: str | None = None
    tokens_over: int | None = None
    trial: str | None = None
    terms: tuple[Term, ...] | None = None


def filtered(project_id: int, filters: CallFilters) -> QuerySet[Call]:
    """The calls that fit the filters but for `q`, in no order. At most three queries are made for
    the values of filters, and those of TermTable.conditions."""
    return _fitting(found_by_index(project_id, filters), project_id, filters)


def narrowed(rows: QuerySet[Call], project_id: int, filters: CallFilters) -> QuerySet[Call]:
    """Those of the rows of `found_by_index` that fit all filters, tried on each of them."""
    rows = _fitting(rows, project_id, filters)
    if not filters.q:
        return rows
    by_name, by_correlation, by_conversation = searches(project_id, filters.q)
    return rows.filter(by_name | by_correlation | by_conversation)


def looked_through(
    project_id: int,
    filters: CallFilters,
    beside: tuple[datetime, int] | None = None,
    *,
    is_ahead: bool = False,
) -> tuple[QuerySet[Call], Reach | None]:
    """The calls that fit the filters but for `q`, in no order, as far as one page looks for them
    that begins at the newest call (is_ahead: the oldest), or beside one; and how far that is.

    MOST_TRIED calls are looked at where terms or filters are tried on each. Reach None: all, as
    nothing is tried or there are fewer. Queries: those of `filtered` and queries.lists.leading.
    """
    found, looked = found_by_index(project_id, filters), None
    if not filters.q:
        found, looked = led(
            found,
            "started_at",
            beside,
            is_tried=_is_tried(filters),
            is_ahead=is_ahead,
            most=MOST_TRIED,
        )
    rows = _fitting(found, project_id, filters)
    return looked.within(rows) if looked else rows, looked


def _is_tried(filters: CallFilters) -> bool:
    """Whether rows are looked at one by one: nearly all calls are main ones, so these are found."""
    return (
        bool(CALL_TERMS.tried(filters.terms) or filters.level_reason)
        or filters.purpose == OTHER
        or filters.lane == Lane.SIDE
        or any(each is not None for each in (filters.size, filters.variant, filters.tokens_over))
    )


def found_by_index(project_id: int, filters: CallFilters) -> QuerySet[Call]:
    """The calls that fit all filters that an index serves."""
    values: dict[str, str] = {}
    for name in ("level", "cause", "finish_reason", "purpose", "pack"):
        value = getattr(filters, name)
        if value is not None and (name, value) not in _GROUPS:
            values[name] = value
    if filters.client is not None:
        values["client_name"] = filters.client.strip().lower()
    rows = Call.objects.filter(project_id=project_id, **values)
    asked = {column: [value] for column, value in values.items()}
    if filters.model is not None:
        asked["model_key"] = [*model_keys(project_id=project_id, model=filters.model)]
        rows = rows.filter(model_key__in=asked["model_key"])
    if filters.cause == ANY_CAUSE:
        asked["cause"] = [ANY_CAUSE]
    rows = within_joint_months(rows, project_id, asked, since=filters.since, until=filters.until)
    if filters.level_reason is not None:
        # Only an unknown level has a reason; the level has an index.
        rows = rows.filter(level=Level.UNKNOWN.value, level_reason=filters.level_reason)
    # What the partial indexes leave out, in their own words: SQLite uses them only then.
    if filters.cause:
        rows = rows.filter(~Q(cause=""))
    if filters.finish_reason and filters.finish_reason != FinishReason.STOP:
        rows = rows.filter(~Q(finish_reason="stop"))
    if filters.conversation is not None:
        found = named(project_id, filters.conversation)
        rows = rows.none() if found is None else rows & calls_of(found)
    if filters.trial is not None:
        rows = rows.filter(id__in=calls_of_trial(project_id, filters.trial))
    if filters.since is not None:
        rows = bounded(rows, "started_at", gte=filters.since)
    if filters.until is not None:
        rows = bounded(rows, "started_at", lt=filters.until)
    served = CALL_TERMS.served(filters.terms)
    return rows.filter(CALL_TERMS.conditions(project_id, served)) if served else rows


def _fitting(rows: QuerySet[Call], project_id: int, filters: CallFilters) -> QuerySet[Call]:
    tried = CALL_TERMS.tried(filters.terms)
    rows = _of_kind(rows, filters)
    return rows.filter(CALL_TERMS.conditions(project_id, tried)) if tried else rows


# Words that stand for more than one value.
_GROUPS: Final = (("cause", ANY_CAUSE), ("purpose", OTHER))


def _of_kind(rows: QuerySet[Call], filters: CallFilters) -> QuerySet[Call]:
    """Narrowed by what the models page groups calls by, and by their lane."""
    if filters.purpose == OTHER:
        rows = rows.exclude(purpose__in=PURPOSES)
    if filters.variant == NO_VARIANT:
        rows = rows.filter(Q(prompt_variant="") | Q(purpose=ROUTE))
    elif filters.variant is not None:
        rows = rows.filter(prompt_variant=filters.variant).exclude(purpose=ROUTE)
    if filters.size is not None:
        least, end = bounds_of_band(filters.size)
        rows = rows.filter(sent_bytes__gte=least)
        rows = rows if end is None else rows.filter(sent_bytes__lt=end)
    if filters.tokens_over is not None:
        rows = rows.filter(prompt_tokens__gt=filters.tokens_over)
    if filters.lane is not None:
        is_side = Q(lane=Lane.SIDE.value)
        rows = rows.filter(is_side if filters.lane == Lane.SIDE else ~is_side)
    return rows


def ways_to_find(
    rows: QuerySet[Call], project_id: int, text: str | None
) -> tuple[QuerySet[Call], ...]:
    """The queries that together find the rows that a text is searched in, some of them twice; where
    there is none the rows themselves, those of each of several values by themselves.

    The three ways to find a call are three queries: each has its index, while one query with
    OR reads every call.
    """
    if not text:
        return by_value(rows)
    by_name, by_correlation, by_conversation = searches(project_id, text)
    found = find_beginning(project_id, text, _SORTED_CALLS + 1)
    told = find_beginning(project_id, text, _SORTED_CALLS + 1, of="correlation_id")
    talks = Call.objects.filter(by_conversation, project_id=project_id).order_by()
    said = places_of(talks, "id", _SORTED_CALLS + 1)
    return (
        _few_or_walked(rows, project_id, found, by_name),
        _few_or_walked(rows, project_id, told, by_correlation),
        _few_or_walked(rows, project_id, said, by_conversation),
    )


def _few_or_walked(
    rows: QuerySet[Call], project_id: int, found: Sequence[Place], way: Q
) -> QuerySet[Call]:
    """Calls by the beginning of an id, whether one begins so or nearly all.

    Few enough are found by their numbers and sorted; where there are more, a walk from the newest
    on soon has its page full.
    """
    if len(found) > _SORTED_CALLS:
        return rows.filter(way)
    return calls_at(project_id, found, among=rows)


def searches(project_id: int, text: str) -> tuple[Q, Q, Q]:
    """Calls by the beginning of their own, their correlation or their conversation's id."""
    named = Conversation.objects.filter(starts_with("name", text), project_id=project_id)
    talks = list(
        named.order_by("-latest_at", "-id").values_list("id", "started_at", "latest_at")[
            :_SEARCHED_CONVERSATIONS
        ]
    )
    by_conversation = Q(conversation_id__in=[pk for pk, _, _ in talks])
    if talks and connection.vendor == "postgresql":
        # In the months that these reach over; SQLite would walk by such a time.
        by_conversation &= Q(
            started_at__gte=min(first for _, first, _ in talks),
            started_at__lte=max(latest for _, _, latest in talks),
        )
    return starts_with("name", text), starts_with("correlation_id", text), by_conversation
