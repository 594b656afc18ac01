"""Windows of local models: what a budget wants a server to make room for, and what then holds.

Source: issue 5, spec/dominds-and-ollama.md 2.8 no. 3 and 4: a budget and the window that the server
really gives have to be one number, which is told to the server (Ollama's `num_ctx`) and is only
ever lowered to what the model has, never raised.
"""

from __future__ import annotations

from dataclasses import replace

from helmdash.core.budgets import EffectiveBudget, LimitSource


def wanted_window(budget: EffectiveBudget) -> int:
    """The tokens of prompt and reply together that this budget needs room for.

    The advertised window where the row has one; else the prompt's limit with the reply on top: in
    a window of the bare prompt limit, a prompt that just fits would have no room for its answer.
    """
    if budget.context_length is not None and budget.context_length > 0:
        return budget.context_length
    prompt = budget.limit_tokens if budget.limit_tokens is not None else budget.input_tokens
    return prompt + budget.output_tokens


def within_window(
    budget: EffectiveBudget, window: int | None, *, most_reply_tokens: int | None = None
) -> EffectiveBudget:
    """The budget as it holds in a window of so many tokens; unchanged where None is known.

    The limit is at most the window, the critical line at most 90 % of it (the seed's default), and
    the prompt at most what the window leaves for it: less the reserve or, if smaller, the longest
    reply. No more than half is kept for replies, since a prompt has to fit in somewhere.
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
    critical = max(1, window * 9 // 10)
    if budget.critical_max_tokens is not None:
        critical = min(critical, budget.critical_max_tokens)
    return replace(
        narrowed,
        limit_tokens=window,
        limit_source=LimitSource.CONTEXT_LENGTH,
        critical_max_tokens=critical,
    )
