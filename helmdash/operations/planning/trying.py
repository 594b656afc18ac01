"""One try at a plan: fit the catalog to the settings of the try, ask, and read the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from time import perf_counter

from helmdash.core.budgets.budgets import EffectiveBudget, PromptVariant
from helmdash.core.calls.beside import plan_of_calls, route_of_calls
from helmdash.core.calls.completion import Complete, Completion, UnknownModel
from helmdash.core.calls.failures import Advice, Cause, FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.decoding.decoding import Decoded
from helmdash.core.fitting.inputs import Around, FilterUse, FitInputs, fit_inputs
from helmdash.core.fitting.selection import Selection
from helmdash.core.planning.answers import Attempt
from helmdash.core.planning.plan_reading import decode_plan, read_plan
from helmdash.core.planning.plans import Plan, PlannedRoute, RouteKind, UnusablePlan
from helmdash.core.planning.prompts import Prompt, Task, build_prompt, fixed_bytes
from helmdash.core.planning.recovery import TrySettings
from helmdash.core.planning.route_reading import decode_route, read_route
from helmdash.core.planning.suggestions import suggest_entries
from helmdash.operations.fitting.fits import Fitted, keep_fit
from helmdash.operations.ids import new_id
from helmdash.operations.planning.arguments import check_args
from helmdash.operations.planning.asking import Question, variant_of
from helmdash.operations.planning.attempts import Reader, attempt_call, sha_of
from helmdash.operations.planning.filtering import ask_filter
from helmdash.operations.planning.plan_rows import keep_attempt, keep_catalog
from helmdash.operations.planning.threads import in_thread

# The nearest entries for a tool that is not there: more would be another catalog.
_SUGGESTIONS = 3

# The rule of a cause that HelmDash found itself: nothing was sent.
NO_ROOM = "context.budget"

Report = Callable[[int, str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of one try: an answer, or a cause."""

    settings: TrySettings
    answer: Plan | PlannedRoute | None = None
    cause: Cause | None = None
    fitted: Fitted | None = None
    is_too_large: bool = False  # no model was asked: there is no room for any catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """A catalog that fits, and the messages around it."""

    selection: Selection
    prompt: Prompt
    budget: EffectiveBudget
    inputs: FitInputs


class Teller:
    """Makes the tries of one plan, one after the other."""

    def __init__(
        self,
        question: Question,
        complete: Complete,
        clock: Callable[[], datetime],
        report: Report,
    ) -> None:
        self._question = question
        self._complete = complete
        self._clock = clock
        self._report = report
        self.attempts: list[Attempt] = []
        # What the filter picked; None until it was asked. It is asked once.
        self._picks: tuple[str, ...] | None = None

    async def try_once(self, settings: TrySettings, reason: str) -> Tried:
        """Fit, ask and read. Raises UnknownModel for a model that no upstream serves."""
        question = self._question
        fit = await in_thread(self._fit, settings)
        if not fit.selection.trim.fits:
            return Tried(
                settings=settings,
                cause=_no_room(fit),
                fitted=self._fitted(fit),
                is_too_large=not self.attempts,
            )
        fit = await self._filtered(settings, fit)
        fitted = self._fitted(fit)
        attempt = await in_thread(self._keep, settings, fit, fitted, reason)
        await self._report(_percent(attempt.number), f"Asking {settings.model}.")
        completion = Completion(
            call_id=attempt.call_id,
            model=settings.model,
            system=fit.prompt.system,
            user=fit.prompt.user,
            max_tokens=settings.max_tokens,
            json_mode=settings.json_mode,
            caches_system=fit.prompt.caches_system,
        )
        try:
            reply = await attempt_call(
                question,
                attempt,
                completion,
                self._reader_of(settings.variant),
                complete=self._complete,
                clock=self._clock,
                trim=fit.selection.trim,
            )
        except asyncio.CancelledError:
            # The call is recorded; the plan's page shall lead to it.
            await asyncio.shield(self._note(attempt))
            raise
        await self._note(reply.attempt)
        return Tried(
            settings=settings, answer=reply.answer, cause=reply.attempt.cause, fitted=fitted
        )

    async def _filtered(self, settings: TrySettings, fit: _Fit) -> _Fit:
        """Ask the filter, where it may help and was not asked before; then fit again."""
        doubt = fit.selection.doubt
        if doubt is None or not fit.budget.allows_llm_filter or self._picks is not None:
            return fit
        self._picks = ()
        await self._report(15, "Asking which entries matter.")
        try:
            reply = await ask_filter(
                self._question,
                fit.selection,
                doubt,
                planner=settings.model,
                number=len(self.attempts) + 1,
                complete=self._complete,
                clock=self._clock,
            )
        except UnknownModel:
            if fit.budget.filter_model in ("", settings.model):
                raise
            # A filter model that is not there is no reason to plan nothing.
            return _asked_here(fit)
        if reply is None:
            return fit
        await self._note(reply.attempt)
        if reply.answer is None:
            return _asked_here(fit)
        self._picks = reply.answer.ids
        return _asked_here(await in_thread(self._fit, settings))

    async def _note(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        await in_thread(keep_attempt, self._question, attempt)

    def _fit(self, settings: TrySettings) -> _Fit:
        """The catalog for a try. The caller's defaults give way before entries do."""
        question = self._question
        # Without any, there is nothing that could give way.
        choices = [question.defaults, None] if question.defaults else [None]
        budget = question.rules.lookup(settings.model)
        inputs = self._inputs(settings, budget, choices)
        made = fit_inputs(
            question.prepared,
            inputs,
            intent=question.intent,
            budget=budget,
            picks=self._picks or (),
            history=question.history,
            hash_word=question.hash_word,
            clock=perf_counter,
        )
        prompt = build_prompt(
            task=question.task,
            variant=settings.variant,
            catalog=made.selection.catalog,
            defaults=choices[made.at],
            intent=question.intent,
            context=question.ask.context,
            in_system=made.selection.is_stable,
            completed=question.completed,
            note=settings.note,
        )
        return _Fit(selection=made.selection, prompt=prompt, budget=made.budget, inputs=inputs)

    def _inputs(
        self,
        settings: TrySettings,
        budget: EffectiveBudget,
        choices: Sequence[Mapping[str, object] | None],
    ) -> FitInputs:
        """What this try's fit is made of. choices: of defaults, the first that leave room."""
        follows_budget = (
            self._question.task is Task.PLAN
            and variant_of(self._question.ask) is None
            and settings.variant is budget.prompt_variant
        )
        return FitInputs(
            around=tuple(
                Around(
                    self._fixed(settings, defaults, in_system=False),
                    self._fixed(settings, defaults, in_system=True),
                )
                for defaults in choices
            ),
            catalog_bytes=settings.catalog_bytes,
            variant=settings.variant if follows_budget else None,
            is_plan=True,
            filter_use=FilterUse.NO if self._picks is None else FilterUse.BEFORE,
            picks=self._picks or (),
        )

    def _fixed(
        self, settings: TrySettings, defaults: Mapping[str, object] | None, *, in_system: bool
    ) -> int:
        question = self._question
        return fixed_bytes(
            task=question.task,
            variant=settings.variant,
            defaults=defaults,
            intent=question.intent,
            context=question.ask.context,
            in_system=in_system,
            completed=question.completed,
            note=settings.note,
        )

    def _fitted(self, fit: _Fit) -> Fitted:
        return Fitted(
            fit_id=new_id("fit", self._clock()),
            catalog=fit.selection.catalog,
            trim=fit.selection.trim,
            budget=fit.budget,
            prompt_variant=fit.budget.prompt_variant.value,
            response_format="",
            catalog_placement="system" if fit.selection.is_stable else "user",
        )

    def _keep(self, settings: TrySettings, fit: _Fit, fitted: Fitted, reason: str) -> Attempt:
        """Store the Trim and the catalog of a try before the call is made."""
        question, now = self._question, self._clock()
        keep_fit(
            project=question.project,
            fitted=fitted,
            prepared=question.prepared,
            inputs=fit.inputs,
            intent=question.intent,
            catalog_name=question.catalog_name,
            caller=question.caller,
            conversation=question.ask.conversation,
            now=now,
        )
        return Attempt(
            number=len(self.attempts) + 1,
            purpose=question.ask.kind,
            call_id=new_id("call", now),
            model=settings.model,
            prompt_variant=settings.variant.value,
            response_format="json_object" if settings.json_mode else "",
            max_tokens=settings.max_tokens,
            reason=reason,
            prompt_bytes=fit.prompt.bytes,
            system_sha=sha_of(fit.prompt.system),
            catalog_digest=keep_catalog(question, fit.selection.catalog, now),
            catalog_bytes=fit.selection.trim.after_bytes,
            fit_id=fitted.fit_id,
        )

    def _reader_of(self, variant: PromptVariant) -> Reader[Plan | PlannedRoute]:
        is_plan = self._question.task is Task.PLAN
        return Reader(
            _finder_of(self._question.task),
            self._reader(variant),
            of_calls=plan_of_calls if is_plan else route_of_calls,
            serves=_calls_something,
            noted=lambda answer, note: replace(answer, notes=(note, *answer.notes)),
        )

    def _reader(self, variant: PromptVariant) -> Callable[[object, bool], Plan | PlannedRoute]:
        question = self._question

        def read(value: object, partial: bool) -> Plan | PlannedRoute:
            if question.task is Task.ROUTE:
                return read_route(
                    value,
                    catalog=question.prepared.catalog,
                    intent=question.intent,
                    check_args=check_args,
                    suggest=self._suggest,
                    partial=partial,
                )
            plan = read_plan(
                value,
                catalog=question.prepared.catalog,
                variant=variant,
                intent=question.intent,
                check_args=check_args,
                suggest=self._suggest,
                completed=question.known_completed,
                partial=partial,
            )
            self._guard(plan, variant)
            return plan

        return read

    def _guard(self, plan: Plan, variant: PromptVariant) -> None:
        """Raises UnusablePlan for a step that was told before (the loop guard)."""
        if variant is not PromptVariant.SINGLE_PICK:
            return
        question = self._question
        for step in plan.steps:
            if question.chain.repeats(question.project.id, step):
                raise UnusablePlan(
                    "plan.repeats_itself",
                    f"{step.entry or 'the gap'} with the same arguments was told before, "
                    f"in {question.chain.newest}",
                )

    def _suggest(self, asked: str) -> tuple[str, ...]:
        """The entries nearest to a text, best first."""
        return suggest_entries(self._question.prepared.index, asked, _SUGGESTIONS)


def _asked_here(fit: _Fit) -> _Fit:
    """The fit, noted as one that was in doubt and asked the filter by itself."""
    return replace(fit, inputs=replace(fit.inputs, filter_use=FilterUse.HERE))


def _calls_something(answer: Plan | PlannedRoute) -> bool:
    """Whether at least one entry of the catalog is called."""
    if isinstance(answer, Plan):
        return any(step.entry is not None for step in answer.steps)
    return answer.recommendation.kind is not RouteKind.NONE


def _finder_of(task: Task) -> Callable[[str, FinishReason | None], Decoded]:
    find = decode_plan if task is Task.PLAN else decode_route
    return lambda raw, finish_reason: find(raw, finish_reason=finish_reason)


def _no_room(fit: _Fit) -> Cause:
    """Nothing was sent: what surrounds the catalog leaves no room for even one entry."""
    around = fit.prompt.bytes - fit.selection.trim.after_bytes
    tokens, most = fit.budget.estimator.tokens_of_bytes(around), fit.budget.most_prompt_tokens
    is_by_row = most == fit.budget.input_tokens
    more = "raise input_tokens" if is_by_row else "choose a model with a larger window"
    return Cause(
        name=FailureCause.CONTEXT_OVERFLOW,
        rule=NO_ROOM,
        advice=Advice.SHORTEN_PROMPT,
        detail=f"The request and its context take about {tokens:,} tokens, and the budget "
        f"{fit.budget.key or 'fallback'} allows {most:,} with the catalog. "
        f"Shorten user_intent or context, or {more}. No model was called.",
    )


def _percent(number: int) -> int:
    """Each further try is closer to the end, and none is it."""
    return min(20 + (number - 1) * 20, 90)
