"""Plans and routes from a request: who asks, and who waits for the answer.

Without a server (a command, a test) the work runs where it is asked for.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from asgiref.sync import async_to_sync
from django.db import connection
from django.http import HttpRequest
from django.utils import timezone

from helmdash import planner
from helmdash.api.auth import Access, access_of
from helmdash.operations.planning import Ask, Made
from helmdash.upstream.sharing import Shared, Stopping, shared_of

_STOPPING = "HelmDash is stopping. Ask again when it runs."


def make(request: HttpRequest, ask: Ask) -> Made:
    """Plan or route, and wait for it. Raises AskProblem, CatalogError, UnknownModel, PlanFailed;
    Stopping when the server is about to stop."""
    access, shared = access_of(request), shared_of(request)
    if shared is None:
        return async_to_sync(_work)(access, ask, None)
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
    return planner.begin(
        actor=access.actor,
        project=access.project,
        ask=ask,
        caller=access.name,
        shared=shared,
        clock=timezone.now,
    )


async def _work(access: Access, ask: Ask, shared: Shared | None) -> Made:
    return await planner.make(
        actor=access.actor,
        project=access.project,
        ask=ask,
        caller=access.name,
        shared=shared,
        clock=timezone.now,
    )


async def _keep(promise: Future[Made], access: Access, ask: Ask, shared: Shared) -> None:
    """Work that a thread waits for."""
    try:
        promise.set_result(await _work(access, ask, shared))
    except asyncio.CancelledError:
        promise.set_exception(Stopping(_STOPPING))
        raise
    except Exception as error:
        promise.set_exception(error)


def _let_go() -> None:
    """Back to the pool: a model takes longer to answer than others should wait for a connection."""
    if not connection.in_atomic_block:
        connection.close()
