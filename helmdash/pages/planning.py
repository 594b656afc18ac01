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

from helmdash import planner
from helmdash.core.access.permissions import Actor
from helmdash.operations.planning import Ask, PlanFailed
from helmdash.queries import upstreams
from helmdash.queries.access.access import ProjectInfo
from helmdash.upstream.sharing import shared_of

# Upstreams that do not list their models are asked for them; they have five seconds for it.
_FINDING_SECONDS = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What somebody wants to try, and who it is."""

    actor: Actor
    project: ProjectInfo
    ask: Ask
    caller: str


def start(request: HttpRequest, trial: Trial) -> str:
    """Begin it; the plan's id, also of one that failed.

    The model has been asked for with `require_served`. Raises AskProblem, CatalogError and
    UnknownModel before anything is kept, Stopping when the server is about to stop.
    """
    shared = shared_of(request)
    if shared is None:
        return async_to_sync(_now)(trial)
    return planner.begin(
        actor=trial.actor,
        project=trial.project,
        ask=trial.ask,
        caller=trial.caller,
        shared=shared,
        clock=timezone.now,
    )


def require_served(request: HttpRequest, project: ProjectInfo, model: str) -> None:
    """Raises UnknownModel where no upstream takes the model that was typed; "" is none.

    Without a server there is nothing to ask; `start` then finds out.
    """
    shared = shared_of(request)
    if not model or shared is None:
        return
    work = shared.listings.choose(
        model, upstreams.endpoints(project_id=project.id), default=project.default_upstream
    )
    try:
        asyncio.run_coroutine_threadsafe(work, shared.loop).result(_FINDING_SECONDS)
    except TimeoutError:
        return  # the plan itself will tell


async def _now(trial: Trial) -> str:
    try:
        made = await planner.make(
            actor=trial.actor,
            project=trial.project,
            ask=trial.ask,
            caller=trial.caller,
            shared=None,
            clock=timezone.now,
        )
    except PlanFailed as failed:
        return failed.plan_id
    return made.plan_id
