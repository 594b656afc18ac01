"""Assembling a prompt for a model: the budget is looked up, the rest is core's.

Nothing is stored and nothing is sent: the manifest is the receipt, and the caller keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from helmdash.answers import INLINE, Doc, Words, answer
from helmdash.core.assembly.assembly import Assembled, NoRoom, assemble, prompt_budget
from helmdash.core.assembly.chunks import Chunk, SelectionMode
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.text.tokens import Estimator
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets

# Where a prompt's budget comes from, besides the sources of a limit.
FROM_REQUEST = "request"
FROM_FALLBACK = "fallback"


class NoPromptBudget(Exception):
    """The budget leaves no room for any prompt; `field` says what to change, `message` how."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBudget:
    """Where the budget and the way of counting come from.

    tokens: what the prompt may have. `source`: "request", "fallback", or the source of the model's
    limit. `limit_tokens` and `reserve_tokens` are None when the request named the budget.
    """

    tokens: int
    estimator: Annotated[Estimator, INLINE]
    source: Annotated[str, Words((FROM_REQUEST, *LimitSource, FROM_FALLBACK))]
    key: Annotated[str, Doc("Key of the budget row; empty for the fallback.")]
    limit_tokens: int | None = None
    reserve_tokens: int | None = None


@answer("Assembled")
@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledPrompt:
    """A prompt that fits, and its receipt.

    budget: what it was held to.
    """

    assembled: Annotated[Assembled, INLINE]
    budget: PromptBudget


def assemble_prompt(
    *,
    project: ProjectInfo,
    model: str | None,
    system: str,
    instructions: str,
    user_query: str,
    chunks: Sequence[Chunk],
    mode: SelectionMode,
    budget_tokens: int | None,
    conversation: str | None = None,
) -> AssembledPrompt:
    """Assemble a prompt within a budget: `budget_tokens`, or where that is None what a model's
    window leaves (model None: the fallback's). conversation: whose budget it is, where a trial
    runs; None: of none.

    Raises OverBudget or ChunkProblem as `core.assembly.assembly.assemble`, and NoPromptBudget.
    """
    budget = find_prompt_budget(
        project=project, model=model, budget_tokens=budget_tokens, conversation=conversation
    )
    assembled = assemble(
        system=system,
        instructions=instructions,
        user_query=user_query,
        chunks=chunks,
        mode=mode,
        budget_tokens=budget.tokens,
        estimator=budget.estimator,
    )
    return AssembledPrompt(assembled=assembled, budget=budget)


def find_prompt_budget(
    *,
    project: ProjectInfo,
    model: str | None,
    budget_tokens: int | None,
    conversation: str | None = None,
) -> PromptBudget:
    """The budget of a prompt, in tokens: the limit less what is reserved for the reply.

    budget_tokens wins as it is, also over a smaller window: who names it knows the window that the
    server really has. None: the model's limit counts; where none is known, as under the fallback
    (model None), the row's input_tokens. Raises NoPromptBudget when the reserve takes it all.
    """
    rules = budgets.table(project_id=project.id).for_conversation(conversation)
    row = rules.lookup(model or "")
    if budget_tokens is not None:
        return PromptBudget(
            tokens=budget_tokens, estimator=row.estimator, source=FROM_REQUEST, key=row.key
        )
    limit = row.input_tokens if row.limit_tokens is None else row.limit_tokens
    try:
        tokens = prompt_budget(limit_tokens=limit, reserve_tokens=row.reserve_tokens)
    except NoRoom as error:
        raise _no_prompt_budget(model, row, error) from None
    return PromptBudget(
        tokens=tokens,
        estimator=row.estimator,
        source=_source(row.limit_source),
        key=row.key,
        limit_tokens=limit,
        reserve_tokens=row.reserve_tokens,
    )


def _source(limit_source: LimitSource | None) -> str:
    return FROM_FALLBACK if limit_source is None else limit_source.value


def _no_prompt_budget(model: str | None, row: EffectiveBudget, error: NoRoom) -> NoPromptBudget:
    named = f"the budget row {row.key}" if row.key else "the fallback budget"
    message = f"{error}; lower reserve_tokens in {named}, or send budget_tokens"
    return NoPromptBudget("model" if model else "budget_tokens", message)
