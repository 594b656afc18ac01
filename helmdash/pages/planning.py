"""Plans and routes that somebody tries on a page: begun at once, made in the background.

Under a server the work runs on its event loop, and the plan's page follows it. Without one (a
test, a command that calls a view) it is made before the answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from asgiref.sync import async_to_sync
from django.http import HttpRequest
from django.utils import timezone

from helmdash.core.catalog import CatalogError
from helmdash.core.completion import UnknownModel
from helmdash.operations.planning import (
    Ask,
    AskProblem,
    PlanFailed,
    begin_plan,
    give_up_plan,
    make_plan,
)
from helmdash.operations.planning.threads import in_thread
from helmdash.queries import budgets, upstreams
from helmdash.queries.access import ProjectInfo
from helmdash.upstream.completing import completer
from helmdash.upstream.listings import unserved
from helmdash.upstream.sharing import Shared, Stopping, shared_of

# Upstreams that do not list their models are asked for them; they have five seconds for it.
_FINDING_SECONDS = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What somebody wants to try, and who it is."""

    project: ProjectInfo
    ask: Ask
    caller: str


def start(request: HttpRequest, trial: Trial) -> str:
    """Begin it; the plan's id, also of one that failed.

    Raises AskProblem, CatalogError and UnknownModel before anything is kept, Stopping when the
    server is about to stop.
    """
    shared = shared_of(request)
    if shared is None:
        return async_to_sync(_now)(trial)
    _require_served(shared, trial)
    plan_id = begin_plan(
        project=trial.project, ask=trial.ask, caller=trial.caller, now=timezone.now()
    )
    try:
        shared.spawn(_in_background(shared, trial, plan_id))
    except Stopping as error:
        _give_up(trial, plan_id, str(error))
        raise
    return plan_id


def _require_served(shared: Shared, trial: Trial) -> None:
    """Raises UnknownModel where no upstream takes the model that was typed."""
    model = (trial.ask.model or "").strip()
    if not model:
        return
    work = shared.listings.choose(
        model,
        upstreams.endpoints(project_id=trial.project.id),
        default=trial.project.default_upstream,
    )
    try:
        route = asyncio.run_coroutine_threadsafe(work, shared.loop).result(_FINDING_SECONDS)
    except TimeoutError:
        return  # the plan itself will tell
    if route is None:
        raise UnknownModel(unserved(model))


async def _now(trial: Trial) -> str:
    try:
        return await _make(trial, shared=None, plan_id=None)
    except PlanFailed as failed:
        return failed.plan_id


async def _in_background(shared: Shared, trial: Trial, plan_id: str) -> None:
    try:
        await _make(trial, shared=shared, plan_id=plan_id)
    except (PlanFailed, UnknownModel):
        return  # the plan's page says so
    except (AskProblem, CatalogError) as error:
        # What was there when it began is gone: the catalog, or the plan it goes on with.
        await in_thread(_give_up, trial, plan_id, str(error))


async def _make(trial: Trial, *, shared: Shared | None, plan_id: str | None) -> str:
    project = trial.project
    endpoints = await in_thread(upstreams.endpoints, project_id=project.id)
    rules = await in_thread(budgets.table, project_id=project.id)
    async with completer(
        endpoints,
        default=project.default_upstream,
        clock=timezone.now,
        shared=shared,
        rules=rules,
    ) as complete:
        made = await make_plan(
            project=project,
            ask=trial.ask,
            caller=trial.caller,
            complete=complete,
            clock=timezone.now,
            plan_id=plan_id,
        )
    return made.plan_id


def _give_up(trial: Trial, plan_id: str, sentence: str) -> None:
    give_up_plan(project=trial.project, plan_id=plan_id, sentence=sentence, now=timezone.now())
