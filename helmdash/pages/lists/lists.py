"""The lists of the pages: what the bar of each asks for, and what it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from helmdash.core.text.query_terms import Field
from helmdash.pages.lists.list_forms import (
    CallFilterForm,
    ConversationFilterForm,
    ListForm,
    PlanFilterForm,
    TrimFilterForm,
)
from helmdash.queries import plans
from helmdash.queries.calls import facets as call_facets
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.terms import CALL_TERMS
from helmdash.queries.conversations import facets as conversation_facets
from helmdash.queries.conversations import listing as conversation_listing
from helmdash.queries.conversations.filters import CONVERSATION_TERMS
from helmdash.queries.fitting import trims
from helmdash.queries.fitting.trim_filters import TRIM_FIELDS
from helmdash.queries.lists.facets import Facets
from helmdash.queries.plans.filters import PLAN_TERMS


@dataclass(frozen=True, slots=True, kw_only=True)
class ListKind:
    """One list.

    noun: its page. items: what it lists, of which `item` is one. controls: those that say the same
    as a field of the query. offered: values that a field may be asked for, in a project. counted:
    which values the items have that fit a form; exported: all of them, oldest first where its
    address says no order.
    """

    noun: str
    items: str
    item: str
    form: type[ListForm]
    fields: tuple[Field, ...]
    controls: Mapping[str, str]
    offered: Callable[[int, Field], tuple[str, ...]]
    counted: Callable[[int, Any, datetime], Facets]
    exported: Callable[[int, Any, datetime], Iterator[object]]


def _order(form: ListForm) -> dict[str, str]:
    """What the address says of the order; a file has its own where it says nothing."""
    is_said = form.data.get("sort") or form.data.get("order")
    return {"sort": form.sorting} if is_said else {}


def _fits_offered(project_id: int, field: Field) -> tuple[str, ...]:
    return tuple(field.words) or trims.offered(project_id=project_id).get(field.name, ())


LISTS: Final[Mapping[str, ListKind]] = {
    kind.noun: kind
    for kind in (
        ListKind(
            noun="calls",
            items="calls",
            item="call",
            form=CallFilterForm,
            fields=CALL_TERMS.fields,
            controls={
                **{name: name for name in ("level", "model", "client", "cause", "purpose")},
                **{name: name for name in ("pack", "conversation", "lane", "variant")},
                "finish": "finish_reason",
                "reason": "level_reason",
            },
            offered=CALL_TERMS.values,
            counted=lambda project_id, form, _: call_facets.facets(
                project_id=project_id, filters=form.filters()
            ),
            exported=lambda project_id, form, _: call_listing.export(
                project_id=project_id, filters=form.filters(), **_order(form)
            ),
        ),
        ListKind(
            noun="conversations",
            items="conversations",
            item="conversation",
            form=ConversationFilterForm,
            fields=CONVERSATION_TERMS.fields,
            controls={name: name for name in ("level", "model", "client")},
            offered=CONVERSATION_TERMS.values,
            counted=lambda project_id, form, _: conversation_facets.facets(
                project_id=project_id, filters=form.filters()
            ),
            exported=lambda project_id, form, _: conversation_listing.export(
                project_id=project_id, filters=form.filters(), **_order(form)
            ),
        ),
        ListKind(
            noun="plans",
            items="plans",
            item="plan",
            form=PlanFilterForm,
            fields=PLAN_TERMS.fields,
            controls={
                name: name for name in ("outcome", "model", "variant", "kind", "tool", "intent")
            },
            offered=PLAN_TERMS.values,
            counted=lambda project_id, form, now: plans.facets(
                project_id=project_id, now=now, **form.filters()
            ),
            exported=lambda project_id, form, now: plans.export(
                project_id=project_id, now=now, **form.filters(), **_order(form)
            ),
        ),
        ListKind(
            noun="trims",
            items="fits",
            item="fit",
            form=TrimFilterForm,
            fields=TRIM_FIELDS,
            controls={name: name for name in ("outcome", "model", "client", "catalog", "cut")},
            offered=_fits_offered,
            counted=lambda project_id, form, _: trims.facets(
                project_id=project_id, filters=form.filters()
            ),
            exported=lambda project_id, form, _: trims.export(
                project_id=project_id, filters=form.filters(), **_order(form)
            ),
        ),
    )
}
