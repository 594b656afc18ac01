"""Checking a request against its model's budget before it is sent."""

from __future__ import annotations

from dataclasses import dataclass

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.text.tokens import TOKENS_PER_IMAGE
from helmdash.gateway.refusals import Refusal
from helmdash.gateway.routes import Shape
from helmdash.providers.wire import WireError

# Each vendor's own words, so that agents that know them shorten their prompt by themselves.
_WORDS = {
    Shape.OPENAI: (
        "This model's maximum context length is {limit} tokens. "
        "However, your request is about {estimate} tokens."
    ),
    Shape.ANTHROPIC: "prompt is too long: {estimate} tokens > {limit} maximum",
    Shape.GEMINI: (
        "The input token count ({estimate}) exceeds the maximum number of tokens allowed ({limit})."
    ),
    Shape.GEMINI_ARRAY: (
        "The input token count ({estimate}) exceeds the maximum number of tokens allowed ({limit})."
    ),
    Shape.OLLAMA: "prompt too long; exceeded max context length by {over} tokens",
    Shape.OLLAMA_GENERATE: "prompt too long; exceeded max context length by {over} tokens",
}
_WHOSE = " (HelmDash's budget for {key}, estimated before sending; nothing was sent.)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A request's estimated tokens beside what its budget allows."""

    tokens: int
    limit: int
    key: str

    @property
    def is_over(self) -> bool:
        """Whether the request is larger than its budget."""
        return self.tokens > self.limit

    @property
    def words(self) -> str:
        """For the header of a warning."""
        return f"about {self.tokens} tokens, budget {self.limit} ({self.key})"


def estimate(*, text_bytes: int, images: int, budget: EffectiveBudget) -> Estimate:
    """Estimate the whole request: all its bytes but the images', which cost by the piece."""
    tokens = budget.estimator.tokens_of_bytes(text_bytes) + images * TOKENS_PER_IMAGE
    return Estimate(tokens=tokens, limit=budget.input_tokens, key=budget.key or "other models")


def over_budget(found: Estimate, shape: Shape) -> Refusal:
    """The refusal of a request that is larger than its budget, in the vendor's words."""
    words = _WORDS[shape].format(
        estimate=found.tokens, limit=found.limit, over=found.tokens - found.limit
    )
    return Refusal(
        WireError(
            message=words + _WHOSE.format(key=found.key),
            code="context_length_exceeded",
            type="invalid_request_error",
            status=400,
        ),
        records=True,
        code="over_budget",
    )
