"""Models: how their calls end, by purpose, prompt variant and size, and the newest of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.pages import scope
from helmdash.pages.lists.filters import ModelFilterForm
from helmdash.pages.parts.charts.heat_map import LEAST_CALLS, SHADES, Rows, heat_map
from helmdash.pages.parts.lists.call_groups import plans_among
from helmdash.pages.render import PageRequest, show
from helmdash.pages.zones import reader_zone
from helmdash.queries import distinct_values, models
from helmdash.queries.calls.spending import spending, uncounted
from helmdash.queries.models import ModelRow, RecentCall

# What helmdeck ADR 053's table is about; other calls say little of a model's plans.
_PLANNING = ("plan", "route", "filter")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGroup:
    """Calls of one correlation id, in their order: a filter pass and the plan after it, say."""

    correlation_id: str | None
    plan_id: str | None
    calls: tuple[RecentCall, ...]

    @property
    def total_ms(self) -> int | None:
        """What they took together; None when one did not tell."""
        spans = [call.latency_ms for call in self.calls]
        return sum(ms for ms in spans if ms is not None) if None not in spans else None


@require_safe
def model_page(request: PageRequest) -> HttpResponse:
    """Rates with their intervals, and the newest calls of one model."""
    request.now = timezone.now()
    project = scope.current_project(request)
    form = ModelFilterForm(request.GET, now=request.now, zone=reader_zone(request))
    context: dict[str, object] = {"form": form, "most": models.MOST_CALLS}
    if form.is_valid():
        wanted = form.values()
        found = models.model_rows(
            project_id=project.id,
            model=wanted["model"],
            purpose=form.counted_purpose,
            since=wanted["since"],
            until=wanted["until"],
        )
        shown = found.rows
        by_client = spending(
            project_id=project.id,
            model=wanted["model"],
            since=wanted["since"],
            until=wanted["until"],
        )
        by = Rows(wanted["by"] or Rows.MODEL)
        latest_of = wanted["model"] or _first(shown)
        context |= {
            "rows": shown,
            "found": found,
            "most_models": models.MOST_MODELS,
            "most_of_model": models.MOST_OF_MODEL,
            "map": heat_map(shown, by=by, carried=form.carried),
            "map_rows": [(None if each is Rows.MODEL else each.value, each.value) for each in Rows],
            "shades": SHADES,
            "least_calls": LEAST_CALLS,
            "is_sample": any(row.is_sample for row in shown),
            "is_rounded": any(row.is_rounded for row in shown),
            "is_behind": any(row.is_behind for row in shown),
            "is_exact": all(row.is_exact for row in shown),
            "counted_as": form.counted_purpose,
            "spending": by_client,
            "uncounted": uncounted(found, by_client) if not form.counted_purpose else 0,
            "latest_of": latest_of,
            "call_groups": _call_groups(project.id, latest_of, wanted["purpose"]),
        }
    if not request.htmx:
        context |= {
            "models": distinct_values.values(project_id=project.id, column="model_key"),
            "purposes": distinct_values.values(project_id=project.id, column="purpose"),
        }
    return show(
        request,
        "pages/models.html",
        context,
        fragment="pages/_models.html",
        status=200 if form.is_valid() else 400,
    )


def _first(rows: Sequence[ModelRow]) -> str | None:
    """The model whose newest calls are shown unasked: one that plans, if any does."""
    planning = [row.name for row in rows if row.purpose in _PLANNING]
    return next(iter([*planning, *(row.name for row in rows)]), None)


def _call_groups(project_id: int, model: str | None, purpose: str | None) -> tuple[CallGroup, ...]:
    """Neighbors of one correlation id; a call without one is a group of its own."""
    if not model:
        return ()
    calls = models.recent_calls(project_id=project_id, model=model, purpose=purpose)
    plans = plans_among((call.correlation_id for call in calls), project_id=project_id)
    grouped = groupby(enumerate(calls), key=lambda pair: pair[1].correlation_id or pair[0])
    found = (tuple(call for _, call in pairs) for _, pairs in grouped)
    return tuple(_call_group(each, plans) for each in found)


def _call_group(calls: tuple[RecentCall, ...], plans: frozenset[str]) -> CallGroup:
    told = calls[0].correlation_id
    return CallGroup(correlation_id=told, plan_id=told if told in plans else None, calls=calls)
