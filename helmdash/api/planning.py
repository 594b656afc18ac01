"""Plans and routes from a request: who asks, by which upstreams, and who waits for the answer.

Under a server the work runs on its event loop and belongs to no request: a client that leaves, or
that never wanted to wait, ends neither the calls under way nor the record of the plan. Without one
(a command, a test) it runs where it is asked for.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from asgiref.sync import async_to_sync
from django.db import connection
from django.http import HttpRequest
from django.utils import timezone

from helmdash.api.auth import Access, access_of
from helmdash.core.budgets import BudgetTable
from helmdash.core.catalog import CatalogError
from helmdash.core.completion import UnknownModel
from helmdash.core.endpoints import Endpoint
from helmdash.operations.planning import (
    Ask,
    AskProblem,
    Made,
    PlanFailed,
    begin_plan,
    give_up_plan,
    make_plan,
)
from helmdash.operations.planning.threads import in_thread
from helmdash.queries import budgets, upstreams
from helmdash.upstream.completing import completer
from helmdash.upstream.sharing import Shared, Stopping, shared_of

_STOPPING = "HelmDash is stopping. Ask again when it runs."


def make(request: HttpRequest, ask: Ask) -> Made:
    """Plan or route, and wait for it. Raises AskProblem, CatalogError, UnknownModel, PlanFailed;
    Stopping when the server is about to stop."""
    access, shared = access_of(request), shared_of(request)
    if shared is None:
        return async_to_sync(_work)(access, ask, shared=None)
    promise: Future[Made] = Future()
    shared.spawn(_keep(promise, access, ask, shared))
    _let_go()
    return promise.result()


def begin(request: HttpRequest, ask: Ask) -> str | None:
    """Begin to plan or route in the background; the plan's id, or None where there is no server.

    Raises AskProblem and CatalogError at once, Stopping when the server is about to stop.
    """
    access, shared = access_of(request), shared_of(request)
    if shared is None:
        return None
    plan_id = begin_plan(project=access.project, ask=ask, caller=access.name, now=timezone.now())
    try:
        shared.spawn(_in_background(access, ask, shared, plan_id))
    except Stopping as error:
        _give_up(access, plan_id, str(error))
        raise
    return plan_id


async def _work(
    access: Access, ask: Ask, *, shared: Shared | None, plan_id: str | None = None
) -> Made:
    endpoints, rules = await in_thread(_standing, access.project.id)
    async with completer(
        endpoints,
        default=access.project.default_upstream,
        clock=timezone.now,
        shared=shared,
        rules=rules,
    ) as complete:
        return await make_plan(
            project=access.project,
            ask=ask,
            caller=access.name,
            complete=complete,
            clock=timezone.now,
            plan_id=plan_id,
        )


def _standing(project_id: int) -> tuple[tuple[Endpoint, ...], BudgetTable]:
    return upstreams.endpoints(project_id=project_id), budgets.table(project_id=project_id)


async def _keep(promise: Future[Made], access: Access, ask: Ask, shared: Shared) -> None:
    """Work that a thread waits for."""
    try:
        promise.set_result(await _work(access, ask, shared=shared))
    except asyncio.CancelledError:
        promise.set_exception(Stopping(_STOPPING))
        raise
    except Exception as error:
        promise.set_exception(error)


async def _in_background(access: Access, ask: Ask, shared: Shared, plan_id: str) -> None:
    """Work that nobody waits for: what becomes of it is asked for by its id."""
    try:
        await _work(access, ask, shared=shared, plan_id=plan_id)
    except (PlanFailed, UnknownModel):
        return  # the plan says so
    except (AskProblem, CatalogError) as error:
        # What was there when it began is gone: the catalog, or the plan it goes on with.
        await in_thread(_give_up, access, plan_id, str(error))


def _give_up(access: Access, plan_id: str, sentence: str) -> None:
    give_up_plan(project=access.project, plan_id=plan_id, sentence=sentence, now=timezone.now())


def _let_go() -> None:
    """Back to the pool: a model takes longer to answer than others should wait for a connection."""
    if not connection.in_atomic_block:
        connection.close()
