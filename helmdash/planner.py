"""The planner: plans of `operations`, made by a project's upstreams. For every face.

Under a server the work runs on its event loop and belongs to no request: a client that leaves, or
that never wanted to wait, ends neither the calls under way nor the record of the plan.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from helmdash.core.access.permissions import Actor, Forbidden, Right, require
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.completion import Complete, Completion, UnknownModel
from helmdash.core.catalog.catalog import CatalogError
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.heavy import end_turn
from helmdash.operations.planning import (
    Ask,
    AskProblem,
    Made,
    PlanFailed,
    Progress,
    begin_plan,
    fail_plan,
    make_plan,
)
from helmdash.operations.planning.threads import in_thread
from helmdash.queries import upstreams
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.access.standing import require_still
from helmdash.queries.budgets import budgets
from helmdash.upstream.completing import completer
from helmdash.upstream.sharing import Shared, Stopping

Clock = Callable[[], datetime]


async def make(
    *,
    actor: Actor,
    project: ProjectInfo,
    ask: Ask,
    caller: str,
    shared: Shared | None,
    clock: Clock,
    progress: Progress | None = None,
    plan_id: str | None = None,
) -> Made:
    """Plan or route. Raises Forbidden, AskProblem, CatalogError, UnknownModel, PlanFailed.

    shared: None opens connections of its own. plan_id: one that `begin_plan` opened.
    """
    require(actor, Right.PLAN, project_id=project.id)
    endpoints, rules = await in_thread(_standing, project.id, ask.conversation)

    async def still() -> None:
        await in_thread(require_still, actor, Right.PLAN, project_id=project.id, now=clock())

    async with completer(
        endpoints, default=project.default_upstream, clock=clock, shared=shared, rules=rules
    ) as complete:
        return await make_plan(
            project=project,
            ask=ask,
            caller=caller,
            complete=_waiting(complete, still),
            clock=clock,
            progress=progress,
            plan_id=plan_id,
        )


def begin(
    *, actor: Actor, project: ProjectInfo, ask: Ask, caller: str, shared: Shared, clock: Clock
) -> str:
    """Begin to plan or route in the background; the plan's id.

    Raises Forbidden, AskProblem and CatalogError at once, Stopping when the server is about to
    stop.
    """
    require(actor, Right.PLAN, project_id=project.id)
    plan_id = begin_plan(project=project, ask=ask, caller=caller, now=clock())

    def give_up(sentence: str) -> None:
        fail_plan(project_id=project.id, plan_id=plan_id, sentence=sentence, now=clock())

    async def work() -> None:
        try:
            await make(
                actor=actor,
                project=project,
                ask=ask,
                caller=caller,
                shared=shared,
                clock=clock,
                plan_id=plan_id,
            )
        except (PlanFailed, UnknownModel, Forbidden):
            return  # the plan says so
        except (AskProblem, CatalogError) as error:
            # What was there when it began is gone: the catalog, or the plan it goes on with.
            await in_thread(give_up, str(error))

    try:
        shared.spawn(work())
    except Stopping as error:
        give_up(str(error))
        raise
    return plan_id


def _waiting(complete: Complete, still: Callable[[], Awaitable[None]]) -> Complete:
    """The same; before it waits for a model, the next heavy request may begin.

    still: raises Forbidden where whoever asked for the plan may not any more: a key that was
    revoked while one is made pays for no further question.
    """

    async def waiting(completion: Completion) -> Capture:
        await still()
        end_turn()
        return await complete(completion)

    return waiting


def _standing(
    project_id: int, conversation: str | None
) -> tuple[tuple[Endpoint, ...], BudgetTable]:
    rules = budgets.table(project_id=project_id).for_conversation(conversation)
    return upstreams.endpoints(project_id=project_id), rules
