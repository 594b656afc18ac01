"""Conversations: the list, and one with its fill curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from helmdash.core.budgets import levels, projection
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.projection import Projection, Prompt
from helmdash.core.calls.lanes import Lane
from helmdash.operations.recorder.catching_up import wait_for_conversation
from helmdash.pages import scope
from helmdash.pages.beside import beside
from helmdash.pages.guards import require_storable
from helmdash.pages.lists.list_bars import conversation_bars
from helmdash.pages.lists.list_forms import ConversationFilterForm
from helmdash.pages.lists.lists import LISTS
from helmdash.pages.lists.query_bar import settled
from helmdash.pages.lists.saved_views import with_views
from helmdash.pages.parts import care
from helmdash.pages.parts.agents.window_mending import window_mending
from helmdash.pages.parts.charts import charts, composition, curve_events, curve_points, whole_curve
from helmdash.pages.parts.lists.one_shots import grouped
from helmdash.pages.parts.net_value import marker_notes
from helmdash.pages.parts.reminders import notes_at
from helmdash.pages.render import PageRequest, live, live_with, show
from helmdash.pages.views import panels
from helmdash.pages.zones import reader_zone
from helmdash.queries import distinct_values, line_edits, marks, triage
from helmdash.queries.budgets import budgets
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.calls.listing import CallPage
from helmdash.queries.conversations import conversations, dropped_context, listing
from helmdash.queries.conversations.conversations import ConversationDetail
from helmdash.queries.conversations.curve import (
    CURVE_POINTS,
    CurvePoint,
    call_at,
    with_cache_misses,
)
from helmdash.queries.conversations.spent import spent
from helmdash.queries.evidence.net_value import of_conversation
from helmdash.queries.lists.paging import BadCursor
from helmdash.queries.lists.reach import MOST_TRIED

# The newest calls below the curve; the calls page has the rest.
_CALLS_SHOWN = {Lane.MAIN: 20, Lane.SIDE: 10}
# The curve as a table, which is most of the page's bytes; longer than this it is searched on the
# calls page.
_TABLE_ROWS = 50
# What the curve marks, in words; the newest of the drawing.
_EVENTS_SHOWN = 50
# No conversation has a billion generations, and no database takes any number.
_MOST_DIGITS = 9
# A caution that goes on for long gives one in ten generations; the newest tell how it stands.
_GUIDANCE_SHOWN = 30


@require_safe
@with_views("conversations")
@beside(panels.conversation)
@live
def conversation_list(request: PageRequest) -> HttpResponse:
    """Conversations, those that need somebody first."""
    project = scope.current_project(request)
    kind = LISTS["conversations"]
    form = ConversationFilterForm(request.GET, now=request.now, zone=reader_zone(request))
    leads_on = settled(request, form, kind.controls)
    if leads_on is not None:
        return leads_on
    context: dict[str, object] = {
        "form": form,
        "most_tried": MOST_TRIED,
        "kind": LISTS["conversations"],
    }
    if form.is_valid():
        filters = form.filters()
        try:
            context["page"] = found = listing.page(
                project_id=project.id,
                filters=filters,
                cursor=request.GET.get("cursor"),
                sort=form.cleaned_data["sort"],
            )
            context["lines"] = grouped(found.items, request.GET)
            context["levels_today"] = line_edits.levels_today(
                project_id=project.id, found=found.items
            )
            context["bars"] = conversation_bars(
                project_id=project.id,
                filters=filters,
                now=request.now,
                zone=reader_zone(request),
            )
        except BadCursor:
            form.add_error(None, "cursor: this link does not lead anywhere; start at the top")
    if not request.htmx:
        context |= {
            "models": distinct_values.values(project_id=project.id, column="model_key"),
            "clients": distinct_values.values(project_id=project.id, column="client_name"),
        }
    return show(
        request,
        "pages/conversations.html",
        context,
        fragment="pages/_conversations.html",
        status=200 if form.is_valid() else 400,
    )


def _care_mark(request: PageRequest, name: str) -> str:
    """What the page shows besides its calls: a clear or a guidance comes without one."""
    project = scope.current_project(request)
    return (
        ""
        if "\x00" in name
        else dropped_context.care_mark(project_id=project.id, conversation=name)
    )


@require_safe
@live_with(_care_mark)
def conversation_page(request: PageRequest, name: str) -> HttpResponse:
    """One conversation: how it filled up, what was done about it, and what survives a clear."""
    require_storable(name)
    project = scope.current_project(request)
    since, up_to = (_generation(request.GET.get(end, "")) for end in ("from", "to"))
    wait_for_conversation(project.id, name)
    found = conversations.find(
        project_id=project.id, conversation_id=name, up_to=up_to, since=since
    )
    if found is None:
        return scope.elsewhere(request, "conversation", name)
    name = found.conversation.id  # it may have been called otherwise before
    newest = found.conversation
    rules = budgets.table(project_id=project.id).for_conversation(name)
    windows = rules.lookup(newest.model, key=newest.model_key, client_window=newest.client_window)
    ahead = _ahead(found, windows)
    edits = _edits(found, project.id, windows, request.now)
    net = of_conversation(project_id=project.id, conversation=name)
    context: dict[str, object] = {
        "detail": found,
        "conversation": found.conversation,
        "curves": _curves(found, windows, ahead, edits, marker_notes(net)),
        "net": net,
        "points": curve_points.encoded(found.curve),
        "level_words": curve_points.LEVEL_WORDS,
        "ahead": ahead,
        "is_ahead_todays": ahead and ahead.line != levels.line_of(ahead.level, found.curve[-1]),
        "is_part": since is not None or up_to is not None,
        "windows": windows,
        "window_mending": window_mending(
            client_name=newest.client.name if newest.client else "",
            client_window=newest.client_window,
            model=newest.model,
            budget=windows,
        ),
        "today": line_edits.judged_today(line_edits.subject_of_conversation(newest), windows),
        "care_level": found.care.level,
        "countdown": care.countdown(found.care, found.guidance),
        "told": care.told(found.guidance, found.care, most=_GUIDANCE_SHOWN),
        "untold": care.untold(found.care, found.conversation.health.level),
        "spent": spent(project_id=project.id, conversation=name, prices=rules),
        "gone": dropped_context.dropped_context(project_id=project.id, conversation=name),
        "table": with_cache_misses(found.curve, _TABLE_ROWS),
        "events": curve_events.events(
            found.curve, found.rounds, (*edits, *_told(found, project.id, request.now))
        )[:_EVENTS_SHOWN],
        "falls": curve_events.unexplained_falls(found.curve)[::-1][:_EVENTS_SHOWN],
        **_neighbours(found, up_to),
        **_composition(found.curve),
        "page": _calls(project.id, name, Lane.MAIN),
        "side": _calls(project.id, name, Lane.SIDE) if newest.side_calls else None,
    }
    if not request.htmx:
        context["triage"] = triage.triage_of(project_id=project.id, conversation=name)
        context["notes"] = notes_at(
            found.conversation, found.reminders, budget=windows, now=request.now
        )
    return show(request, "pages/conversation.html", context, fragment="pages/_conversation.html")


@require_safe
def generation_page(request: PageRequest, number: int, name: str) -> HttpResponse:
    """The way from a point of a curve to its call."""
    require_storable(name)
    project = scope.current_project(request)
    is_any = 0 < number < 10**_MOST_DIGITS
    call_id = (
        call_at(project_id=project.id, conversation=name, generation=number) if is_any else None
    )
    if call_id is None:
        try:
            return scope.elsewhere(request, "conversation", name)
        except Http404:
            said = f"There is no generation {number} of a conversation {name} in {project.name}."
            raise Http404(said) from None
    return redirect("call", call_id)


def _calls(project_id: int, conversation: str, lane: Lane) -> CallPage:
    """The newest of them."""
    filters = CallFilters(conversation=conversation, lane=lane.value)
    return call_listing.page(project_id=project_id, filters=filters, limit=_CALLS_SHOWN[lane])


def _ahead(found: ConversationDetail, today: EffectiveBudget) -> Projection | None:
    """How soon the newest prompt passes its next line by today's budget; None where nothing says
    so, or an older part is shown."""
    newest = found.conversation
    if not found.curve or newest.is_round_empty:
        return None
    last = found.curve[-1]
    if last.generation < newest.generation or not last.is_trusted:
        return None
    prompts = [
        Prompt(each.generation, each.at, each.prompt_tokens)
        for each in found.curve
        if each.round_number == last.round_number
        and each.prompt_tokens is not None
        and each.is_trusted
    ]
    return projection.project(prompts, projection.lines_ahead(newest.health, today))


def _edits(
    found: ConversationDetail, project_id: int, budget: EffectiveBudget, now: datetime
) -> tuple[marks.Mark, ...]:
    """Edits of the budget while the calls were made that the curve shows."""
    if not found.curve:
        return ()
    since, until = _span(found, now)
    return marks.edits_of(project_id=project_id, budget=budget, since=since, until=until)


def _told(found: ConversationDetail, project_id: int, now: datetime) -> tuple[marks.Mark, ...]:
    """What its client told meanwhile."""
    if not found.curve:
        return ()
    since, until = _span(found, now)
    return marks.told_by_client(
        project_id=project_id, conversation=found.conversation.id, since=since, until=until
    )


def _span(found: ConversationDetail, now: datetime) -> tuple[datetime, datetime]:
    """While the calls were made that the curve shows, up to now where these are the newest."""
    first, last = found.curve[0], found.curve[-1]
    is_newest = last.generation >= found.conversation.generation
    return first.at, now if is_newest else last.at


def _generation(text: str) -> int | None:
    """A generation out of the address; None for what is none: then the newest are shown."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number and int(text) else None


def _neighbours(found: ConversationDetail, up_to: int | None) -> dict[str, object]:
    """Up to which generation the curve goes with the one before, and with the one after (None:
    there is none); and the whole of it."""
    curve, newest = found.curve, found.conversation.generation
    first, last = (curve[0].generation, curve[-1].generation) if curve else (0, 0)
    return {
        "older_to": first - 1 if first > 1 else None,
        "newer_to": min(last + CURVE_POINTS, newest) if curve and last < newest else None,
        # Also where none of them are kept any more: somebody was led here by `older`.
        "is_older": up_to is not None and last < newest,
        "curve_span": (first, last),
        "whole": whole_curve.whole_curve(found.whole, found.rounds, shown=(first, last)),
    }


def _composition(points: Sequence[CurvePoint]) -> dict[str, object]:
    """What fills the prompts, for a wide and for a narrow screen, and the newest against the one
    before."""
    newest, before = (*reversed(points[-2:]), None, None)[:2]
    rows = composition.fill_rows(
        newest.composition if newest else None,
        newest.images if newest else None,
        before.composition if before else None,
        before.images if before else None,
    )
    sizes = ((940, "wide"), (380, "only-narrow"))
    return {
        "stacks": [
            (drawn, where, as_share)
            for as_share, height in ((False, 190), (True, 120))
            for width, where in sizes
            if (drawn := composition.stack(points, width=width, height=height, as_share=as_share))
        ],
        "fills": rows,
        "kinds": composition.KINDS,
        # Told where there are any.
        "image_weight": composition.IMAGE_WEIGHT if any(_has_image(each) for each in points) else 0,
        "grew": composition.growth(rows),
    }


def _has_image(point: CurvePoint) -> bool:
    return bool(composition.weights_of(point.composition, point.images).get("images"))


def _curves(
    found: ConversationDetail,
    windows: EffectiveBudget,
    ahead: Projection | None,
    edits: Sequence[marks.Mark],
    notes: Mapping[int, str],
) -> tuple[tuple[charts.Curve, str], ...]:
    """The curve for a wide and for a narrow screen."""
    flat = {}
    if windows.input_tokens != windows.limit_tokens:
        flat["budget"] = windows.input_tokens
    if windows.context_length and windows.context_length != windows.limit_tokens:
        flat["window"] = windows.context_length
    # Of a part that others follow, the rounds after it are not open.
    is_newest = not found.curve or found.curve[-1].generation >= found.conversation.generation
    last = found.conversation.round_number if is_newest else found.curve[-1].round_number
    rounds = tuple(each for each in found.rounds if each.number <= last)
    return tuple(
        (
            charts.curve(
                found.curve,
                width=width,
                height=height,
                rounds=rounds,
                windows=flat,
                ahead=ahead,
                edits=edits,
                notes=notes,
            ),
            where,
        )
        for width, height, where in ((940, 270, "wide"), (380, 230, "only-narrow"))
    )
