"""Does a shortened prompt pay? What it saved, and what it made the provider's cache lose.

Three things shorten a prompt: a *Trim* (of the catalog in it), a *clear* (HelmDash's own fresh
start) and a *compaction* (the client's). Each is held against the main call before it in the same
conversation, by tokens that the provider reported. With P the prompt of a call, R the part of it
that was read from a cache, W the part that was written to one, of the call (b)efore and (a)fter:

    saved    S = P_b - P_a                      of a fresh start
             S = P_a * saved bytes / sent bytes of a Trim, rounded: nobody reports tokens of parts
    held     H = R_b + W_b, at most what the longer prompt had (P_a + S)
    rebilled X = min(H, P_a) - R_a, never below 0
    making   M = (P_c - R_c) + C_c              of the call that wrote the summary, if it is known
    net      N = S - X - M                      tokens

What was held is the least that the cache had: a provider that does not report what it writes may
have had more. Money, by the prices of a million tokens (plain, read, written, completion):

    without  (P_a + S - H) * plain + H * read
    with     (P_a - R_a - W_a) * plain + R_a * read + W_a * written
    making   (P_c - R_c - W_c) * plain + R_c * read + W_c * written + C_c * completion
    net      without - with - making            USD

Both are of one call, the first with the shorter prompt. Every later one that carries on with it
saves S once more, at the price of a read at least: `pays_after` calls bring in what the first lost.
Whatever is not reported, or has no price, is unknown (None), never zero.

docs/net-value.md calculates one by hand. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import ceil, fsum
from typing import Annotated, Final

from helmdash.answers import Doc, answer
from helmdash.core.calls.failures import FailureCause

# Told with every figure. Another formula is another version.
METHOD: Final = "net-value-1"
# A fresh start below half of the window gave up more room than it had used: too early. The folk
# rules begin at 60 %; half leaves them right.
EARLY_SHARE: Final = 0.5
# Calls before and after that tell whether outcomes held: a handful, for later ones tell of other
# things.
NEAR_CALLS: Final = 5
# Providers forget a prompt that is not sent again for five minutes (Anthropic's default; OpenAI:
# five to ten): from then on a lost cache need not be the shorter prompt's doing.
CACHE_SECONDS: Final = 300
_MTOK: Final = 1_000_000


class Shortening(StrEnum):
    """What made a prompt shorter."""

    TRIM = "trim"
    CLEAR = "clear"
    COMPACTION = "compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a provider reported of a call's prompt. None: not reported.

    tokens: all of it, what was read from a cache and written to one included. completion: tokens of
    the answer.
    """

    tokens: int | None
    cached: int | None
    written: int | None
    completion: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """USD for a million tokens. None: unknown; a read or a write without a price of its own costs
    as much as plain input."""

    plain: float | None
    read: float | None = None
    written: float | None = None
    completion: float | None = None


@answer("TokenSum")
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSum:
    """What is known, added up, and how many are not known. sum None: nothing is."""

    sum: int | None
    unknown: int


@answer("UsdSum")
@dataclass(frozen=True, slots=True, kw_only=True)
class UsdSum:
    """The same in USD."""

    sum: float | None
    unknown: int


@answer("NetValue")
@dataclass(frozen=True, slots=True, kw_only=True)
class NetValue:
    """What one shorter prompt came to, in tokens of the first call that had it, and in USD."""

    saved_tokens: Annotated[
        int | None, Doc("Less in the prompt; of a Trim an estimate, by the call's tokens per byte.")
    ]
    held_tokens: Annotated[
        int | None, Doc("What the cache had of the longer prompt, at least: read and written.")
    ]
    rebilled_tokens: Annotated[
        int | None, Doc("Of the shorter prompt, paid anew though the cache had as many.")
    ]
    making_tokens: Annotated[
        int | None, Doc("Of the call that wrote the summary. Null: there was none, or unknown.")
    ]
    net_tokens: Annotated[int | None, Doc("saved - rebilled - making.")]
    net_usd: Annotated[float | None, Doc("By the prices of today's budget.")]
    pays_after: Annotated[
        int | None,
        Doc("Calls with the shorter prompt until it pays. 1: at once. Null: unknown, or never."),
    ]


def of_fresh_start(
    *, before: Prompt, after: Prompt | None, making: Prompt | None, prices: Prices
) -> NetValue:
    """The net value of a clear or a compaction. after None: no call came since; making None: no
    call that wrote a summary is known."""
    saved = None
    if after is not None and before.tokens is not None and after.tokens is not None:
        saved = before.tokens - after.tokens
    return _net(saved=saved, before=before, after=after, making=making, prices=prices)


def of_trim(
    *,
    before: Prompt | None,
    after: Prompt,
    saved_bytes: int,
    sent_bytes: int | None,
    prices: Prices,
) -> NetValue:
    """The net value of a Trim for a call that was sent what it left. before None: no call came
    before, and what a cache would have had is unknown. sent_bytes: of that call; None: unknown."""
    saved = None
    if after.tokens is not None and sent_bytes:
        saved = (2 * after.tokens * saved_bytes + sent_bytes) // (2 * sent_bytes)
    return _net(saved=saved, before=before, after=after, making=None, prices=prices)


def sum_of_tokens(values: Iterable[int | None]) -> TokenSum:
    """Add up what is known."""
    told = list(values)
    known = [each for each in told if each is not None]
    return TokenSum(sum=sum(known) if known else None, unknown=len(told) - len(known))


def sum_of_usd(values: Iterable[float | None]) -> UsdSum:
    """Add up what is known."""
    told = list(values)
    known = [each for each in told if each is not None]
    return UsdSum(sum=fsum(known) if known else None, unknown=len(told) - len(known))


def share_of_window(tokens: int | None, window: int | None) -> float | None:
    """How much of its window a prompt filled; None where either is unknown."""
    return tokens / window if tokens is not None and window else None


def may_have_expired(before: datetime, after: datetime) -> bool:
    """Whether a cache may have forgotten what a call sent when the next one began."""
    return (after - before).total_seconds() > CACHE_SECONDS


def is_too_early(share: float | None) -> bool | None:
    """Whether a fresh start came below EARLY_SHARE of the window; None: unknown."""
    return None if share is None else share < EARLY_SHARE


def is_too_late(causes: Sequence[str], *, was_cut: bool) -> bool:
    """Whether a call of the NEAR_CALLS before was refused for its length, or was probably cut."""
    return was_cut or FailureCause.CONTEXT_OVERFLOW in causes


def _net(
    *,
    saved: int | None,
    before: Prompt | None,
    after: Prompt | None,
    making: Prompt | None,
    prices: Prices,
) -> NetValue:
    longer = None if saved is None or after is None else (after.tokens or 0) + saved
    held = _held(before, longer)
    rebilled = _rebilled(held, after)
    made = _making_tokens(making)
    net = None
    if saved is not None and rebilled is not None and (making is None or made is not None):
        net = saved - rebilled - (made or 0)
    usd = None if net is None or after is None else _usd(longer, held, after, making, prices)
    return NetValue(
        saved_tokens=saved,
        held_tokens=held,
        rebilled_tokens=rebilled,
        making_tokens=made,
        net_tokens=net,
        net_usd=usd,
        pays_after=_pays_after(usd, saved, prices),
    )


def _held(before: Prompt | None, longer: int | None) -> int | None:
    if before is None or before.cached is None:
        return None
    held = before.cached + (before.written or 0)
    return held if longer is None else min(held, max(longer, 0))


def _rebilled(held: int | None, after: Prompt | None) -> int | None:
    if held is None or after is None or after.cached is None or after.tokens is None:
        return None
    return max(min(held, after.tokens) - after.cached, 0)


def _making_tokens(making: Prompt | None) -> int | None:
    if making is None:
        return None
    if making.tokens is None or making.cached is None or making.completion is None:
        return None
    return making.tokens - making.cached + making.completion


def _usd(
    longer: int | None, held: int | None, after: Prompt, making: Prompt | None, prices: Prices
) -> float | None:
    if prices.plain is None or longer is None or held is None:
        return None
    read = prices.plain if prices.read is None else prices.read
    without = (longer - held) * prices.plain + held * read
    spent = _prompt_usd(after, prices.plain, prices)
    if making is not None:
        if prices.completion is None:
            return None
        spent += _prompt_usd(making, prices.plain, prices)
        spent += (making.completion or 0) * prices.completion
    return (without - spent) / _MTOK


def _prompt_usd(prompt: Prompt, plain: float, prices: Prices) -> float:
    read, written = prompt.cached or 0, prompt.written or 0
    rest = max((prompt.tokens or 0) - read - written, 0)
    return (
        rest * plain
        + read * (plain if prices.read is None else prices.read)
        + written * (plain if prices.written is None else prices.written)
    )


def _pays_after(usd: float | None, saved: int | None, prices: Prices) -> int | None:
    if usd is None or prices.plain is None:
        return None
    if usd >= 0:
        return 1
    read = prices.plain if prices.read is None else prices.read
    each = (saved or 0) * read / _MTOK
    return 1 + ceil(-usd / each) if each > 0 else None
