"""Connect: what to paste so that an agent's calls come here, and whether they do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

from django.contrib import messages
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotModified,
    HttpResponseRedirect,
)
from django.urls import reverse
from django.utils import timezone
from django.utils.http import parse_etags, urlencode
from django.views.decorators.http import require_safe

from helmdash.core.access.permissions import Right
from helmdash.operations.access import keys
from helmdash.operations.access.keys import AccessError, NewKey
from helmdash.pages import scope
from helmdash.pages.guards import post_only, takes
from helmdash.pages.lists.offered import model_problem, offered_models, usable_upstreams
from helmdash.pages.parts.agents.table import AGENTS, Agent, find_agent
from helmdash.pages.parts.agents.wiring import Wiring
from helmdash.pages.parts.snippets import KEY_VARIABLE
from helmdash.pages.render import PageRequest, etag, show
from helmdash.queries import connecting, distinct_values
from helmdash.queries.budgets import budgets
from helmdash.queries.upstreams import UpstreamInfo
from helmdash.transcripts.archive import build_archive

# A model id nobody has: its reader puts one in its place.
_BLANK = "provider/MODEL"
# An agent's key lies in its own settings: it reports calls, and reads nothing.
_SCOPES = ("record",)
# A page that is left open for longer waits for a call of today.
_LONGEST_WAIT = timedelta(days=1)


@require_safe
def connect_page(request: PageRequest) -> HttpResponse:
    """The block of one client, and its state; ?client=, ?model= and since when it is waited for.

    HTMX gets the state alone.
    """
    return _show(request)


@post_only("connect")
@takes(Right.MANAGE_KEYS)
def make_key(request: PageRequest) -> HttpResponse:
    """Make a key for one client and fill it in; the answer is the only page that ever shows it."""
    scoped = scope.read(request)
    agent = find_agent(request.POST.get("client", "")) or AGENTS[0]
    try:
        made = keys.create_key(
            actor=scoped.actor,
            name=f"{agent.name} {timezone.now():%Y-%m-%d %H:%M:%S.%f}"[:-4],
            scopes=_SCOPES,
            project=scoped.project.slug,
        )
    except AccessError as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(f"{request.page}?{urlencode({'client': agent.id})}")
    response = _show(request, made=made)
    response["Cache-Control"] = "no-store"
    return response


@require_safe
def history_command(request: HttpRequest) -> HttpResponse:
    """The zipapp that imports transcripts, for everybody: it is our own code and holds no key.

    So it can be had by `curl` on the machine where the transcripts are.
    """
    content, tag = _archive()
    if tag in parse_etags(request.headers.get("If-None-Match", "")):
        return HttpResponseNotModified(headers={"ETag": tag})
    response = HttpResponse(content, content_type="application/zip")
    response["Content-Disposition"] = 'attachment; filename="helmdash.pyz"'
    response["ETag"] = tag
    return response


def _show(request: PageRequest, *, made: NewKey | None = None) -> HttpResponse:
    asked = request.POST if made else request.GET
    agent = find_agent(asked.get("client", "")) or AGENTS[0]
    wanted = asked.get("model", "").strip()
    problem = model_problem(wanted)
    project = scope.current_project(request)
    request.now = timezone.now()
    since = _since(asked.get("since", ""), request.now)
    address = _address(agent, wanted, since)
    # The way back for who changes the scheme, and where the state is asked for.
    request.page = address
    scoped = scope.read(request)
    context: dict[str, object] = {
        "agents": AGENTS,
        "agent": agent,
        "address": address,
        "connection": connecting.connection(
            project_id=project.id,
            clients=agent.clients,
            exporters=agent.exporters,
            since=since,
            sees_refusals=Right.MANAGE_KEYS in scoped.may,
        ),
    }
    if not request.htmx:
        usable = usable_upstreams(project_id=project.id)
        recorded = distinct_values.values(project_id=project.id, column="model_key")
        models = offered_models(usable, recorded)
        model = wanted if wanted and not problem else _proposed(agent, usable, models)
        base = request.build_absolute_uri("/").rstrip("/")
        budget = budgets.resolve(project_id=project.id, model=model).budget if model else None
        wiring = Wiring(
            base=base,
            key=made.secret if made else None,
            model=model,
            window=budget.limit_tokens if budget else None,
            compacts_at=budget.critical_max_tokens if budget else None,
            output_tokens=budget.output_tokens if budget and budget.limit_tokens else None,
        )
        context |= {
            "usable": usable,
            "models": models,
            "wanted": wanted,
            "model": model,
            "problem": problem,
            "budget": budget,
            "base": base,
            "key_variable": KEY_VARIABLE,
            "made": made,
            "snippets": agent.write(wiring),
        }
    status = 400 if problem else 200
    return show(
        request,
        "pages/connect.html",
        context,
        fragment="pages/_connection.html",
        status=status,
    )


def _since(text: str, now: datetime) -> datetime:
    """From when calls count: what the page's address says, in seconds; else from now on."""
    try:
        since = datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError):
        return now.replace(microsecond=0)
    return min(max(since, now - _LONGEST_WAIT), now)


def _address(agent: Agent, model: str, since: datetime) -> str:
    query: dict[str, str | int] = {"client": agent.id, "since": int(since.timestamp())}
    if model:
        query["model"] = model
    return f"{reverse('connect')}?{urlencode(query)}"


def _proposed(agent: Agent, usable: Sequence[UpstreamInfo], models: Sequence[str]) -> str:
    """The model that the client takes by itself ("") where its vendor is an upstream; else the
    first that there is, or a blank."""
    if agent.vendor is not None and any(info.kind == agent.vendor for info in usable):
        return ""
    return models[0] if models else _BLANK


@cache
def _archive() -> tuple[bytes, str]:
    content = build_archive()
    return content, etag("/connect/helmdash.pyz", content.hex())
