"""How much a model thinks: efforts and budgets as each Claude generation takes them.

platform.claude.com/docs/en/build-with-claude/thinking and …/effort. Up to 4.5 thinking has a
budget of tokens, from 4.6 on the model decides and an effort steers it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from helmdash.providers.anthropic.abilities.traits import Traits
from helmdash.providers.anthropic.seals import is_sealed
from helmdash.providers.wire import ChatRequest, Choice, Role, ToolCall

_LEAST_BUDGET = 1024  # the vendor refuses less

# Doubling twice over from the least: what each word is worth is nobody's standard. "high" is half
# of the default for max_tokens of current models, so that half stays for the answer.
_BUDGET_OF_EFFORT = {
    "minimal": _LEAST_BUDGET,
    "low": 2 * _LEAST_BUDGET,
    "medium": 4 * _LEAST_BUDGET,
    "high": 8 * _LEAST_BUDGET,
}
# Every model that has efforts knows these words; "none" gets the least there is.
_EFFORT_WORDS = {
    "none": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingPlan:
    """What to write. `thinking` and `effort` are None where the request says nothing of them."""

    max_tokens: int
    thinking: dict[str, Any] | None = field(default=None)
    effort: str | None = None


def plan_thinking(request: ChatRequest, traits: Traits, *, is_forced: bool) -> ThinkingPlan:
    """Say how to ask for the reasoning a request wants, and the limit of tokens to go with it.

    `is_forced`: the reply has to be a tool call. The vendor refuses thinking together with that
    ("ThinkingPlan may not be enabled when tool_choice forces tool use"); the tool wins.
    """
    max_tokens = request.max_tokens or traits.default_max_tokens
    if request.max_tokens == 0:
        max_tokens = 0
    if not _is_wanted(request):
        return ThinkingPlan(max_tokens=max_tokens, effort=_effort_for_none(request, traits))
    if traits.adaptive_thinking and (
        request.reasoning_tokens is None or not traits.budget_thinking
    ):
        thinking = None if is_forced else {"type": "adaptive"}
        return ThinkingPlan(max_tokens=max_tokens, thinking=thinking, effort=_effort(request))
    if is_forced or not traits.budget_thinking or not _may_go_on_thinking(request):
        return ThinkingPlan(max_tokens=max_tokens)
    return _with_budget(request, max_tokens)


def _is_wanted(request: ChatRequest) -> bool:
    if request.reasoning_tokens is not None:
        return request.reasoning_tokens != 0
    return request.reasoning_effort not in (None, "none")


def _effort_for_none(request: ChatRequest, traits: Traits) -> str | None:
    """Models without budgets may think unasked, and not all of them let it be switched off."""
    said_none = request.reasoning_effort == "none" or request.reasoning_tokens == 0
    if said_none and traits.adaptive_thinking and not traits.budget_thinking:
        return _EFFORT_WORDS["none"]
    return None


def _effort(request: ChatRequest) -> str | None:
    return _EFFORT_WORDS.get(request.reasoning_effort or "")


def _with_budget(request: ChatRequest, max_tokens: int) -> ThinkingPlan:
    budget = request.reasoning_tokens
    if budget is None:
        budget = _BUDGET_OF_EFFORT.get(request.reasoning_effort or "")
    if budget is None or budget < 0:  # a word we do not know; Gemini's -1 for "as you like"
        budget = _BUDGET_OF_EFFORT["medium"]
    budget = max(budget, _LEAST_BUDGET)
    if request.max_tokens is None:
        max_tokens = max(max_tokens, budget + _BUDGET_OF_EFFORT["medium"])  # and room to answer
    is_exact = request.reasoning_tokens is not None and budget < max_tokens
    if not is_exact:
        budget = min(budget, max_tokens // 2)  # the budget counts towards max_tokens
    if budget < _LEAST_BUDGET:
        return ThinkingPlan(max_tokens=max_tokens)
    return ThinkingPlan(
        max_tokens=max_tokens, thinking={"type": "enabled", "budget_tokens": budget}
    )


def _may_go_on_thinking(request: ChatRequest) -> bool:
    """Whether a tool loop that is under way began with a thought that still has its seal.

    With a budget the vendor refuses a tool call that no thought precedes ("Expected `thinking` or
    `redacted_thinking`, but found `tool_use`"), and other formats do not carry the seals.
    """
    for message in reversed(request.messages):
        if message.role is Role.ASSISTANT:
            has_call = any(isinstance(part, ToolCall) for part in message.parts)
            first = message.parts[0] if message.parts else None
            is_redacted = getattr(first, "kind", None) == "redacted_thinking"
            return not has_call or is_redacted or (first is not None and is_sealed(first))
    return True


def forces_a_tool(request: ChatRequest) -> bool:
    """Whether the client asks for a tool call and nothing else."""
    choice = request.tool_choice
    return choice is not None and choice.mode in (Choice.REQUIRED, Choice.ONE)
