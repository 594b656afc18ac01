"""Checking a request against its model's budget before it is sent."""

from __future__ import annotations

from dataclasses import dataclass

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.text.tokens import TOKENS_PER_IMAGE
from helmdash.gateway.refusals import Refusal
from helmdash.providers.protocols import ClientFormat
from helmdash.providers.wire import WireError

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


def over_budget(found: Estimate, client: ClientFormat) -> Refusal:
    """The refusal of a request that is larger than its budget, in the vendor's words."""
    words = client.too_long_words.format(
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
