"""What was asked, and everything that is known about it before a model is called."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from helmdash import conf
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import EffectiveBudget, PromptVariant
from helmdash.core.fitting.prepared import PreparedCatalog
from helmdash.core.planning.completed_steps import completed_steps
from helmdash.core.planning.plans import META_TOOLS, CompletedStep
from helmdash.core.planning.prompts import Task
from helmdash.core.ranking.history import PastPlan
from helmdash.core.text.tokens import json_bytes
from helmdash.operations.fitting.fits import NoCatalog, find_catalog
from helmdash.operations.planning.chain import Chain, Likeness, guessed_chain, named_chain
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.plans import defaults
from helmdash.queries.plans import history as plan_history
from helmdash.records.access.keyed_hash import hash_intent, hash_text, word_hasher

logger = logging.getLogger(__name__)

Kind = Literal["plan", "route"]

_META = " and ".join(sorted(META_TOOLS))

# As long as records keep a model's id.
_MODEL_CHARS = 255
# A running plan's agent asks for the next step within this; later it is another piece of work.
CHAIN_AGE = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a caller wants.

    model None: the server's default (HELMDASH_DEFAULT_MODEL). max_tokens: output; None is the
    budget's. prompt_variant overrides the budget's. continues: the plan this one goes on with.
    conversation: the one it is made for, whose budget may be on trial; None: not told.
    """

    kind: Kind
    user_intent: str
    model: str | None
    context: Mapping[str, object] | None = None
    max_tokens: int | None = None
    catalog: object | None = None
    catalog_name: str | None = None
    prompt_variant: str | None = None
    continues: str | None = None
    conversation: str | None = None


class AskProblem(Exception):
    """Something about the question has to be put right first; `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An `Ask` with everything the database knows about it."""

    project: ProjectInfo
    ask: Ask
    task: Task
    plan_id: str
    caller: str
    model: str
    intent: str
    intent_sha: str
    sketch: tuple[tuple[str, ...], ...]
    text_sha: str
    rules: BudgetTable
    prepared: PreparedCatalog
    catalog_name: str
    history: tuple[PastPlan, ...]
    hash_word: Callable[[str], str]
    defaults: Mapping[str, object] | None
    completed: tuple[CompletedStep, ...]  # what the model is told was done
    # The same, told apart where their texts are not kept.
    known_completed: tuple[CompletedStep, ...]
    chain: Chain
    asked_at: datetime

    @property
    def budget(self) -> EffectiveBudget:
        """The budget of the model that was asked for."""
        return self.rules.lookup(self.model)


def read_question(
    *, project: ProjectInfo, ask: Ask, caller: str, plan_id: str, now: datetime
) -> Question:
    """Check a question and read what is known about it.

    Raises AskProblem, or CatalogError naming the fields of a malformed catalog.
    """
    intent = ask.user_intent.strip()
    if not intent:
        raise AskProblem("user_intent", "say what is to be done; it is blank")
    model = _model_of(ask)
    prepared, catalog_name = _catalog_of(project, ask)
    intent_sha, sketch = hash_intent(project.id, intent)
    # An agent that lists what it did knows better than any chain what came of it.
    listed = completed_steps(ask.context)
    likeness = Likeness(
        project_id=project.id,
        caller=caller,
        model=model,
        intent_sha=intent_sha,
        text_sha=hash_text(project.id, intent),
        context_bytes=json_bytes(ask.context) if ask.context and not listed else 0,
    )
    chain = _chain_of(ask, likeness, now, plan_id)
    return Question(
        project=project,
        ask=ask,
        task=Task.PLAN if ask.kind == "plan" else Task.ROUTE,
        plan_id=plan_id,
        caller=caller,
        model=model,
        intent=intent,
        intent_sha=intent_sha,
        sketch=sketch,
        text_sha=likeness.text_sha,
        rules=budgets.table(project_id=project.id).for_conversation(ask.conversation),
        prepared=prepared,
        catalog_name=catalog_name,
        history=plan_history.past_plans(project_id=project.id, now=now),
        hash_word=word_hasher(project.id),
        defaults=_defaults(project, caller, now),
        completed=listed or chain.completed,
        known_completed=listed or chain.known_completed,
        chain=chain,
        asked_at=now,
    )


def variant_of(ask: Ask) -> PromptVariant | None:
    """The prompt variant that was asked for; None: none, so the budget says. Raises AskProblem for
    a word that is none."""
    if not ask.prompt_variant:
        return None
    try:
        return PromptVariant(ask.prompt_variant)
    except ValueError:
        raise AskProblem(
            "prompt_variant", f"use {' or '.join(each.value for each in PromptVariant)}"
        ) from None


def _model_of(ask: Ask) -> str:
    variant_of(ask)
    if ask.model is not None and not ask.model.strip():
        raise AskProblem("model", "it is blank; name a model as provider/model")
    model = (ask.model or conf.env().default_model).strip()
    if not model:
        raise AskProblem(
            "model",
            "name a model as provider/model (GET /v1/models lists them), or set "
            "HELMDASH_DEFAULT_MODEL",
        )
    if len(model) > _MODEL_CHARS or not model.isprintable():
        raise AskProblem("model", f"use 1 to {_MODEL_CHARS} printable characters")
    return model


def _catalog_of(project: ProjectInfo, ask: Ask) -> tuple[PreparedCatalog, str]:
    try:
        prepared, name = find_catalog(project=project, catalog=ask.catalog, name=ask.catalog_name)
    except NoCatalog as error:
        raise AskProblem("catalog_name" if ask.catalog_name else "catalog", str(error)) from None
    if not prepared.catalog.entries:
        raise AskProblem("catalog", "it has no entry, so there is nothing to plan with")
    if all(entry.id in META_TOOLS for entry in prepared.catalog.entries):
        raise AskProblem("catalog", f"nothing to plan with: it has only {_META}, which plan")
    return prepared, name


def _chain_of(ask: Ask, likeness: Likeness, now: datetime, plan_id: str) -> Chain:
    if ask.continues:
        found = named_chain(project_id=likeness.project_id, plan_id=ask.continues)
        if found is None:
            raise AskProblem("continues", f"there is no plan {ask.continues} in this project")
        return found
    # An agent that says nothing about what it did asks anew.
    if ask.kind != "plan" or not likeness.context_bytes:
        return Chain()
    return guessed_chain(likeness=likeness, since=now - CHAIN_AGE, besides=plan_id)


def _defaults(project: ProjectInfo, caller: str, now: datetime) -> Mapping[str, object] | None:
    """What the caller usually does. A plan is possible without it."""
    try:
        found = defaults.caller_defaults(project_id=project.id, caller=caller, now=now)
    except Exception:
        logger.warning("the defaults of a caller could not be read", exc_info=True)
        return None
    return found.for_prompt()
