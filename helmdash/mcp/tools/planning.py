"""`plan` and `route`: which tools serve an intent.

The work belongs to no request, as in the JSON API: a client that leaves ends neither the calls
under way nor the record of the plan.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal

from django.utils import timezone

from helmdash import planner
from helmdash.doors.bodies.asks import AskIn, to_ask
from helmdash.mcp.arguments import ArgumentShape
from helmdash.mcp.tools.base import Arguments, McpTool, Schema, arguments, free_object, number, text
from helmdash.mcp.visit import Report, Visit
from helmdash.operations.planning import Ask, Made
from helmdash.upstream.sharing import Stopping

log = logging.getLogger(__name__)

Kind = Literal["plan", "route"]
Step = tuple[int, str]

# How long an answer that is there may wait for a slow reader of its progress.
_LAST_NEWS_SECONDS = 0.5

_ASK_IN = ArgumentShape(AskIn)


async def _plan(visit: Visit, given: Arguments, report: Report) -> dict[str, object]:
    return await _make(visit, "plan", given, report)


async def _route(visit: Visit, given: Arguments, report: Report) -> dict[str, object]:
    return await _make(visit, "route", given, report)


async def _make(visit: Visit, kind: Kind, given: Arguments, report: Report) -> dict[str, object]:
    ask = to_ask(kind, _ASK_IN.read(given))
    steps: asyncio.Queue[Step] = asyncio.Queue()

    async def note(percent: int, sentence: str) -> None:
        # Never waits: a client that reads slowly, or has left, must not hold up the plan.
        steps.put_nowait((percent, sentence))

    promise: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
    visit.shared.spawn(_keep(promise, visit, ask, note))
    return (await _follow(promise, steps, report)).body


async def _work(visit: Visit, ask: Ask, note: Report) -> Made:
    return await planner.make(
        actor=visit.caller.actor,
        project=visit.project,
        ask=ask,
        caller=visit.caller.name,
        shared=visit.shared,
        clock=timezone.now,
        progress=note,
    )


async def _keep(promise: asyncio.Future[Made], visit: Visit, ask: Ask, note: Report) -> None:
    """Work whose end somebody may be waiting for."""
    try:
        made = await _work(visit, ask, note)
    except asyncio.CancelledError:
        _end(promise, Stopping("HelmDash is stopping. Ask again when it runs."))
        raise
    except Exception as error:
        _end(promise, error)
    else:
        if not promise.done():
            promise.set_result(made)


def _end(promise: asyncio.Future[Made], error: Exception) -> None:
    if not promise.done():
        promise.set_exception(error)


async def _follow(
    promise: asyncio.Future[Made], steps: asyncio.Queue[Step], report: Report
) -> Made:
    """Wait for the end, and tell how far it is meanwhile. Raises what the work raised."""
    teller = asyncio.ensure_future(_tell(steps, report))
    try:
        made = await promise
        # The last news was put before the promise was kept.
        with suppress(TimeoutError):
            await asyncio.wait_for(steps.join(), _LAST_NEWS_SECONDS)
        return made
    finally:
        teller.cancel()
        with suppress(asyncio.CancelledError):
            await teller


async def _tell(steps: asyncio.Queue[Step], report: Report) -> None:
    while True:
        percent, sentence = await steps.get()
        try:
            await report(percent, sentence)
        except Exception:
            # Only news: whoever has hung up does not get them.
            log.debug("progress could not be told", exc_info=True)
        finally:
            steps.task_done()


_ASK_SCHEMA: Schema = arguments(
    {
        "user_intent": text("What the user wants, as said"),
        "model": text("provider/model; default: the server's"),
        "context": free_object("What the model should know, e.g. steps taken"),
        "max_tokens": number("Output, reasoning included"),
        "catalog": free_object('{"packs":[...],"pipelines":[...]}; default: the current one'),
        "catalog_name": text(),
        "prompt_variant": {"enum": ["full_steps", "single_pick"]},
        "continues": text("plan_id of the plan this goes on with"),
        "conversation": text(),
    },
    required=("user_intent",),
)


def _tool(
    name: Kind,
    description: str,
    run: Callable[[Visit, Arguments, Report], Awaitable[dict[str, object]]],
) -> McpTool:
    return McpTool(
        name=name, description=description, schema=_ASK_SCHEMA, scope="plan", run=run, is_slow=True
    )


PLAN = _tool(
    "plan",
    "Turn what a user wants into ordered tool calls of the catalog, by a model within its budget. "
    "Steps nothing serves are marked with a gap. May take a minute.",
    _plan,
)
ROUTE = _tool(
    "route",
    "Find the one pack or pipeline that serves what a user wants, or what is missing. "
    "May take a minute.",
    _route,
)
