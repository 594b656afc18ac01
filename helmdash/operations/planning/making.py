"""The story of a plan, from the question to the answer (ADR 15).

Read what is known; fit the catalog; ask the filter where the ranking is in doubt; ask the model;
on a cause try again as `core.planning.recovery` says, three times at most; keep every step of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from time import perf_counter

from helmdash.answers import to_json
from helmdash.core.access.permissions import Forbidden
from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.calls.completion import Complete, UnknownModel
from helmdash.core.calls.failures import Advice, Cause, FailureCause
from helmdash.core.planning.answers import Attempt, PlanCompaction
from helmdash.core.planning.plans import PlannedRoute
from helmdash.core.planning.recovery import TrySettings, first_try, next_try
from helmdash.core.text.tokens import json_bytes, utf8_bytes
from helmdash.operations.ids import new_id
from helmdash.operations.planning.answering import answer_of, compaction
from helmdash.operations.planning.asking import (
    Ask,
    AskProblem,
    Question,
    read_question,
    variant_of,
)
from helmdash.operations.planning.plan_rows import (
    Ending,
    close_plan,
    drop_plan,
    fail_plan,
    note_progress,
    open_plan,
    outcome_of,
    route_steps,
)
from helmdash.operations.planning.threads import in_thread
from helmdash.operations.planning.trying import NO_ROOM, Teller, Tried
from helmdash.operations.retention.expired import forget_answers
from helmdash.queries.access.access import ProjectInfo

logger = logging.getLogger(__name__)

Body = dict[str, object]
# Percent done, and what is being done, as a sentence.
Progress = Callable[[int, str], Awaitable[None]]

_STOPPED = "HelmDash was stopped while this was being made."
_NOT_ALLOWED = "Whoever asked for this may not plan here any more."
_BROKEN = "Something went wrong in HelmDash; its log has the details."


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A plan or route that was made: its id, and the answer as the API sends it."""

    plan_id: str
    body: Body


class PlanFailed(Exception):
    """No answer could be had; `cause` says why, and `attempts` what was tried."""

    def __init__(
        self,
        plan_id: str,
        cause: Cause,
        attempts: tuple[Attempt, ...] = (),
        compaction: PlanCompaction | None = None,
    ) -> None:
        super().__init__(cause.detail)
        self.plan_id = plan_id
        self.cause = cause
        self.attempts = attempts
        self.compaction = compaction

    @property
    def told(self) -> Body:
        """What a caller is told besides the sentence: the plan's id, the cause, each attempt, and
        what was cut of the catalog, if anything was."""
        told: Body = {"plan_id": self.plan_id, "cause": self.cause, "attempts": self.attempts}
        return told | ({"compaction": self.compaction} if self.compaction else {})


def begin_plan(*, project: ProjectInfo, ask: Ask, caller: str, now: datetime) -> str:
    """Check a question and open its plan, to be made in the background by `make_plan(plan_id=…)`.

    Its answer can be fetched for an hour, whatever texts the project keeps. Raises AskProblem and
    CatalogError.
    """
    plan_id = new_id("plan", now)
    question = read_question(project=project, ask=ask, caller=caller, plan_id=plan_id, now=now)
    # Who adds an answer that waits clears those that have waited long enough.
    forget_answers(now=now)
    open_plan(question, waits=True)
    return plan_id


async def make_plan(
    *,
    project: ProjectInfo,
    ask: Ask,
    caller: str,
    complete: Complete,
    clock: Callable[[], datetime],
    progress: Progress | None = None,
    plan_id: str | None = None,
) -> Made:
    """Make a plan or a route, and keep all of it.

    plan_id: one that `begin_plan` opened. Raises AskProblem, CatalogError, UnknownModel (nothing
    is kept of these, unless it was begun), PlanFailed, and what `complete` raises, such as
    Forbidden.
    """
    started = perf_counter()
    now = clock()
    question = await in_thread(
        read_question,
        project=project,
        ask=ask,
        caller=caller,
        plan_id=plan_id or new_id("plan", now),
        now=now,
    )
    if plan_id is None:
        await in_thread(open_plan, question, waits=False)
    teller = Teller(question, complete, clock, _reporter(question, progress))
    try:
        tried = await _try_until_answered(question, teller)
        if plan_id is None and tried.is_too_large:
            # Nobody was asked: it is the question that has to change.
            await in_thread(drop_plan, question)
            raise AskProblem(_largest_part(ask), tried.cause.detail if tried.cause else "")
        ending = _ending(question, tried, teller.attempts, _ms_since(started))
        await in_thread(close_plan, question, ending, clock())
    except AskProblem:
        raise
    except UnknownModel as error:
        if plan_id is None and not teller.attempts:
            await in_thread(drop_plan, question)
        else:
            await _fail(question, str(error), clock())
        raise
    except Forbidden:
        await _fail(question, _NOT_ALLOWED, clock())
        raise
    except asyncio.CancelledError:
        await asyncio.shield(_fail(question, _STOPPED, clock()))
        raise
    except Exception:
        await _fail(question, _BROKEN, clock())
        raise
    if progress is not None:
        await progress(100, "Done.")
    if ending.body is None:
        cause = ending.cause
        assert cause is not None
        # Not its sentence, which may hold words of the provider's.
        logger.warning(
            "%s failed: %s (rule %s; calls made: %d)",
            *(question.plan_id, cause.name, cause.rule, len(teller.attempts)),
        )
        raise PlanFailed(
            question.plan_id,
            cause,
            tuple(teller.attempts),
            compaction(ending.fitted) if ending.fitted else None,
        )
    return Made(plan_id=question.plan_id, body=dict(ending.body))


async def _try_until_answered(question: Question, teller: Teller) -> Tried:
    """One try after the other, until there is an answer or nothing else to try."""
    settings = first_try(
        question.budget,
        variant_override=variant_of(question.ask),
        max_tokens=question.ask.max_tokens,
    )
    if question.chain.is_full and settings.variant is PromptVariant.SINGLE_PICK:
        return Tried(settings=settings, cause=_too_long(question))
    tried: list[TrySettings] = []
    reason = "As it was asked."
    before: Tried | None = None
    has_fallback = True
    while True:
        try:
            found = await teller.try_once(settings, reason)
        except UnknownModel:
            if before is None:
                raise
            logger.warning("no upstream serves the fallback %s", settings.model)
            found = None
        if before is not None and (found is None or _was_not_sent(found)):
            # A fallback that cannot be asked, or whose budget has no room for the request, must
            # hide neither why the model that was asked for failed nor what else may help.
            if settings.model == tried[-1].model:
                return before
            has_fallback = False
        elif found is not None:
            if found.answer is not None or found.cause is None:
                return found
            before = found
            tried.append(settings)
        assert before is not None
        assert before.cause is not None
        settings = tried[-1]
        budget = question.rules.lookup(settings.model)
        name = budget.fallback_model if has_fallback else ""
        following = next_try(
            settings,
            before.cause,
            budget=replace(budget, fallback_model=name),
            catalog_bytes=before.fitted.trim.after_bytes if before.fitted else 0,
            tried=tried,
            task=question.task,
            fallback=question.rules.lookup(name) if name else None,
        )
        if following is None:
            return before
        settings, reason = following


def _was_not_sent(found: Tried) -> bool:
    return found.cause is not None and found.cause.rule == NO_ROOM


def _largest_part(ask: Ask) -> str:
    """The field that takes most of the room."""
    context = json_bytes(ask.context) if ask.context else 0
    return "context" if context > utf8_bytes(ask.user_intent) else "user_intent"


def _too_long(question: Question) -> Cause:
    return Cause(
        name=FailureCause.EMPTY_PLAN,
        rule="plan.too_many_steps",
        advice=Advice.SURFACE,
        detail=f"{len(question.chain.plan_ids)} steps were told for this already; "
        "look at what they led to instead of asking for another.",
    )


def _ending(question: Question, tried: Tried, attempts: list[Attempt], latency_ms: int) -> Ending:
    variant, fitted = tried.settings.variant, tried.fitted
    made = tried.answer
    if made is None or fitted is None:
        return Ending(cause=tried.cause, variant=variant, fitted=fitted, latency_ms=latency_ms)
    told = answer_of(
        question,
        made,
        variant=variant,
        fitted=fitted,
        attempts=attempts,
        latency_ms=latency_ms,
    )
    ending = Ending(
        body=to_json(told),
        outcome=outcome_of(made),
        variant=variant,
        fitted=fitted,
        latency_ms=latency_ms,
    )
    if isinstance(made, PlannedRoute):
        return replace(ending, steps=route_steps(made))
    return replace(
        ending,
        steps=made.steps,
        complexity=made.complexity.value,
        more_steps_likely=made.more_steps_likely,
    )


async def _fail(question: Question, sentence: str, now: datetime) -> None:
    """Close a plan that broke off; an unavailable database must not hide the fault itself."""
    try:
        await in_thread(
            fail_plan,
            project_id=question.project.id,
            plan_id=question.plan_id,
            sentence=sentence,
            now=now,
        )
    except Exception:
        logger.exception("a plan that broke off could not be closed")


def _reporter(question: Question, progress: Progress | None) -> Progress:
    """Progress goes to the row, for whoever looks at the page, and to the caller."""

    async def report(percent: int, sentence: str) -> None:
        await in_thread(note_progress, question, percent)
        if progress is not None:
            await progress(percent, sentence)

    return report


def _ms_since(started: float) -> int:
    return round((perf_counter() - started) * 1000)
