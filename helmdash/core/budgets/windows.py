"""Windows of local models: what a budget wants a server to make room for, and what then holds.

A budget and the window that the server really gives have to be one number, which is told to the
server (Ollama's `num_ctx`) and is only ever lowered to what the model has, never raised.
"""

from __future__ import annotations

from dataclasses import replace

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.learned_windows import OUTSIDE, LimitSource
from helmdash.core.budgets.lines import LineSource, lines_that_fit


def wanted_window(budget: EffectiveBudget) -> int:
    """The tokens of prompt and reply together that this budget needs room for.

    The advertised window where the row has one; else the prompt's limit with the reply on top: in
    a window of the bare prompt limit, a prompt that just fits would have no room for its answer.
    """
    limit = _limit_here(budget)
    if limit is not None and budget.limit_source in OUTSIDE:
        return limit  # told by somebody who knows better than the row
    if budget.context_length is not None and budget.context_length > 0:
        return budget.context_length
    prompt = limit if limit is not None else budget.input_tokens
    return prompt + budget.output_tokens


def _limit_here(budget: EffectiveBudget) -> int | None:
    """The limit that a server may be asked for: what a vendor publishes is the window of its own
    servers, and may be more than another one has memory for."""
    return None if budget.limit_source is LimitSource.PUBLISHED else budget.limit_tokens


def served_window(budget: EffectiveBudget, most: int | None) -> int | None:
    """The window (tokens) that a server is told to use: what the budget wants, lowered to the most
    that the model has; None where nothing is known of it.

    most None: nobody says. The fallback row tells nothing about a model, so alone it is not enough.
    """
    if most is None and _limit_here(budget) is None:
        return None
    wanted = wanted_window(budget)
    return wanted if most is None else min(wanted, most)


def with_room_of(budget: EffectiveBudget) -> EffectiveBudget:
    """The budget whose safe input is all of its limit, where its row knew no length to go by.

    Such a row's input is its guess at the window, which a server's own word replaces. Rows with a
    length keep theirs: they were made knowing it. `within_window` then keeps room for the reply.
    """
    is_guess = budget.context_length is None and budget.input_length is None
    if not (budget.is_shipped and is_guess) or budget.limit_source is not LimitSource.SERVER:
        return budget
    return replace(budget, input_tokens=budget.limit_tokens or budget.input_tokens)


def within_window(
    budget: EffectiveBudget, window: int | None, *, most_reply_tokens: int | None = None
) -> EffectiveBudget:
    """The budget as it holds in a window of so many tokens; None, not known: the budget unchanged.

    The limit is at most the window, the lines lie below it as for any limit, and the prompt is at
    most what the window leaves for it: less the reserve or, if smaller, the longest reply
    (most_reply_tokens; None: not limited). No more than half is kept for replies, since a prompt
    has to fit in somewhere.
    """
    if window is None:
        return budget
    replies = [budget.reserve_tokens, budget.output_tokens, window // 2]
    if most_reply_tokens is not None:
        replies.append(most_reply_tokens)
    prompt = max(1, window - max(0, min(replies)))
    narrowed = replace(budget, input_tokens=min(budget.input_tokens, prompt))
    if budget.limit_tokens is not None and budget.limit_tokens <= window:
        return narrowed
    return _with_lines(
        replace(narrowed, limit_tokens=window, limit_source=LimitSource.CONTEXT_LENGTH), window
    )


def _with_lines(budget: EffectiveBudget, limit: int) -> EffectiveBudget:
    """The budget with the lines that this limit gives; a row's own hold as far as they fit in."""
    is_own = LineSource.BUDGET
    lines = lines_that_fit(
        budget.optimal_max_tokens if budget.optimal_source is is_own else None,
        budget.critical_max_tokens if budget.critical_source is is_own else None,
        limit=limit,
    )
    return replace(
        budget,
        optimal_max_tokens=lines.optimal_max_tokens,
        optimal_source=lines.optimal_source,
        critical_max_tokens=lines.critical_max_tokens,
        critical_source=lines.critical_source,
    )
