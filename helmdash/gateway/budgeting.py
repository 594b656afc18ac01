"""Checking a request against its model's budget before it is sent."""

from __future__ import annotations

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.refused_windows import OWN_WORDS
from helmdash.core.values import quick_value
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.refusals import Refusal
from helmdash.gateway.requests.exchange import Exchange
from helmdash.providers.protocols import ClientFormat
from helmdash.providers.wire import WireError

_WHOSE = f" ({OWN_WORDS}{{key}}, estimated before sending; nothing was sent.)"


@quick_value(frozen=True, slots=True, kw_only=True)
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
        """The value of `x-helmdash-budget-warning`: the estimate and the budget, in tokens."""
        return f"about {self.tokens} tokens, budget {self.limit} ({self.key})"


def check_budget(exchange: Exchange) -> None:
    """Warn of a request that is larger than its budget, or raise Refusal (400): see `_mode`."""
    mode = _mode(exchange)
    if mode == "observe" or exchange.budget is None:
        return
    found = estimate(exchange.outgoing, exchange.budget)
    if not found.is_over:
        return
    if mode == "enforce":
        raise _over_budget(found, exchange.route.client)
    exchange.notes["budget_warning"] = found.words


def is_refused(exchange: Exchange, outgoing: OutgoingRequest) -> bool:
    """Whether `check_budget` would refuse this request."""
    return (
        _mode(exchange) == "enforce"
        and exchange.budget is not None
        and estimate(outgoing, exchange.budget).is_over
    )


def estimate(outgoing: OutgoingRequest, budget: EffectiveBudget) -> Estimate:
    """Estimate the whole request: all its bytes but the images', which cost by the piece."""
    tokens = budget.estimator.tokens_of_request(outgoing.text_bytes, images=outgoing.images)
    return Estimate(tokens=tokens, limit=budget.input_tokens, key=budget.key or "other models")


def _mode(exchange: Exchange) -> str:
    """One of observe, warn and enforce: the header decides, else the project."""
    return exchange.options.budget or exchange.key_context.caller.project.budget_mode


def _over_budget(found: Estimate, client: ClientFormat) -> Refusal:
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
