"""Who says how large a model's window is, and whose word counts.

In this order: a budget row that an operator made or changed; a refusal that names the window; the
server, when it is asked; a row that HelmDash ships; the list of what vendors publish, where the
fallback row asks for it (core.budgets.published); the client. A client only suggests: where a
shipped row is all that is known, its word counts as far as the provider documents such a window
for the model (`Variant`), and alone where nothing else is known.

A prompt that was answered although it is far longer than a limit proves that limit wrong. Whoever
told it is then passed over, unless it is an operator, who decides.

Whoever edits another figure of a row, a price say, has said nothing of its window: what servers and
refusals tell of it counts as before (`window_after`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from helmdash.answers import BLANK_IS_NULL, HIDDEN, Doc, JsonName, answer

# What makes the window of a row.
_LENGTHS = ("context_length", "input_length")
# A count may differ from the provider's own by some percent; beyond, the limit is disproved.
_DISPROOF_PERCENT = 110


class WindowSource(StrEnum):
    """What was learned from outside, and from whom."""

    REFUSAL = "refusal"  # a prompt was refused as too long, with the window that there is
    SERVER = "server"  # its listing, Ollama's /api/show, llama.cpp's /props
    SUCCESS = "success"  # an answered prompt longer than the limit: no window, but a proof


class LimitSource(StrEnum):
    """Where a context limit comes from. The first three are members of the governing row."""

    CONTEXT_LENGTH = "context_length"
    INPUT_LENGTH = "input_length"
    BUDGET = "budget"  # the row's input_tokens, where it knows no length
    REFUSAL = "refusal"
    SERVER = "server"
    PUBLISHED = "published"  # the list of core.budgets.published
    CLIENT = "client"


class WindowBy(StrEnum):
    """Whose word the window of a budget row is.

    A row that is copied so that another figure can be changed keeps whose word it was.
    """

    OPERATOR = "operator"
    SHIPPED = "shipped"  # as HelmDash ships it
    FALLBACK = "fallback"  # figures of the fallback, which says nothing of any model's window


OUTSIDE = frozenset(
    {LimitSource.REFUSAL, LimitSource.SERVER, LimitSource.PUBLISHED, LimitSource.CLIENT}
)
# Of these, what holds for whoever asks: a client's word is of its session.
TOLD = OUTSIDE - {LimitSource.CLIENT}


@answer("LimitDisproved")
@dataclass(frozen=True, slots=True, kw_only=True)
class WindowReport:
    """A call that was answered although its prompt was far longer than a limit.

    That is what leaves; within, the newest that one source told of a model. call_id: "" where no
    call told it. seen_at: when it was stored, None is just now. told_at: when that call began,
    which may be long before (history is imported); None: nobody knows (any more).
    """

    key: Annotated[str, HIDDEN]
    source: Annotated[WindowSource, HIDDEN]
    tokens: Annotated[int, JsonName("prompt_tokens")]
    seen_at: datetime | None = None
    call_id: Annotated[str, BLANK_IS_NULL] = ""
    told_at: Annotated[datetime | None, HIDDEN] = None

    @property
    def moment(self) -> datetime | None:
        """When it was true, as far as is known; None: just now."""
        return self.told_at or self.seen_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A longer window that a provider documents for models whose id begins with `prefix`."""

    prefix: str
    context_length: int
    evidence: str = ""


class ClaimState(StrEnum):
    """What became of a window that one source reported."""

    USED = "used"
    OUTRANKED = "outranked"  # somebody who comes first has told one
    DISPROVED = "disproved"
    USED_ALTHOUGH_DISPROVED = "used_although_disproved"  # an operator's


@answer("WindowClaim")
@dataclass(frozen=True, slots=True, kw_only=True)
class WindowClaim:
    """What one source says of a model's window, and what became of its word.

    In tokens. `seen_at` None: just now, or said by a row or a client, which is true at any time;
    told_at as WindowReport has it.
    """

    source: LimitSource
    tokens: int
    state: ClaimState
    is_operators: Annotated[bool, Doc("An operator's own number: it always counts.")] = False
    seen_at: datetime | None = None
    call_id: Annotated[str, BLANK_IS_NULL, Doc("The call that told it.")] = ""
    told_at: Annotated[datetime | None, HIDDEN] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The limit that counts, None where nobody knows one; everybody's word; the proof against."""

    tokens: int | None
    source: LimitSource | None
    claims: tuple[WindowClaim, ...]
    disproved_by: WindowReport | None  # only where a word that would count is disproved


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLimit:
    """What the governing row says. `is_operators`: an operator made it so."""

    tokens: int
    source: LimitSource
    is_operators: bool


def choose_limit(
    row: RowLimit | None,
    learned: Mapping[WindowSource, WindowReport],
    *,
    published: int | None = None,
    client_window: int | None = None,
    variant: Variant | None = None,
) -> Limit:
    """Decide which source counts (ADR 24). row None: no row but the fallback governs the model;
    published: the window (tokens) that its vendor publishes, client_window: that which the client
    names, None: none; variant None: no longer one is documented.
    """
    proof = learned.get(WindowSource.SUCCESS)
    claims: list[WindowClaim] = []
    found: WindowClaim | None = None
    is_contested = False
    for claim in _claims(row, learned, published, client_window, variant):
        is_wrong = proof is not None and _is_disproved(claim, proof)
        if found is not None:
            state = ClaimState.DISPROVED if is_wrong else ClaimState.OUTRANKED
        elif is_wrong and not claim.is_operators:
            state, is_contested = ClaimState.DISPROVED, True
        else:
            state = ClaimState.USED_ALTHOUGH_DISPROVED if is_wrong else ClaimState.USED
            is_contested = is_contested or is_wrong
            found = claim
        claims.append(_with(claim, state))
    return Limit(
        tokens=found.tokens if found else None,
        source=found.source if found else None,
        claims=tuple(claims),
        disproved_by=proof if is_contested else None,
    )


def disproves(prompt_tokens: int, limit: int) -> bool:
    """Whether an answered prompt is so far above the limit (tokens) that the limit is wrong."""
    return prompt_tokens * 100 > limit * _DISPROOF_PERCENT


def variant_of(ids: Iterable[str], variants: Sequence[Variant]) -> Variant | None:
    """The variant whose prefix is the longest that fits one of a model's ids (small letters), or
    None."""
    found = [one for one in variants for each in ids if each.startswith(one.prefix)]
    return max(found, key=lambda one: len(one.prefix), default=None)


def _claims(
    row: RowLimit | None,
    learned: Mapping[WindowSource, WindowReport],
    published: int | None,
    client_window: int | None,
    variant: Variant | None,
) -> Iterable[WindowClaim]:
    if row is not None and row.is_operators:
        yield _claim(row.source, row.tokens, is_operators=True)
    for source, told in (
        (LimitSource.REFUSAL, learned.get(WindowSource.REFUSAL)),
        (LimitSource.SERVER, learned.get(WindowSource.SERVER)),
    ):
        if told is not None:
            yield _claim(source, told.tokens, told)
    if row is not None and not row.is_operators:
        asked = min(client_window or 0, variant.context_length) if variant else 0
        if asked > row.tokens:
            # What the row says is of the variant that was not asked for.
            yield _claim(LimitSource.CLIENT, asked)
        yield _claim(row.source, row.tokens)
    if published:
        yield _claim(LimitSource.PUBLISHED, published)
    if client_window:
        yield _claim(LimitSource.CLIENT, client_window)


def _claim(
    source: LimitSource,
    tokens: int,
    told: WindowReport | None = None,
    *,
    is_operators: bool = False,
) -> WindowClaim:
    return WindowClaim(
        source=source,
        tokens=tokens,
        state=ClaimState.USED,
        is_operators=is_operators,
        seen_at=told.seen_at if told else None,
        call_id=told.call_id if told else "",
        told_at=told.told_at if told else None,
    )


def _with(claim: WindowClaim, state: ClaimState) -> WindowClaim:
    return WindowClaim(
        source=claim.source,
        tokens=claim.tokens,
        state=state,
        is_operators=claim.is_operators,
        seen_at=claim.seen_at,
        call_id=claim.call_id,
        told_at=claim.told_at,
    )


def _is_disproved(claim: WindowClaim, proof: WindowReport) -> bool:
    """A word given after the proof stands: windows are changed, too."""
    return not _is_later(claim, proof) and disproves(proof.tokens, claim.tokens)


def _is_later(claim: WindowClaim, proof: WindowReport) -> bool:
    """By when their calls began; of one moment, by which was stored first."""
    if claim.seen_at is None or proof.seen_at is None:
        return False
    claimed = (claim.told_at or claim.seen_at, claim.seen_at)
    return claimed > (proof.told_at or proof.seen_at, proof.seen_at)


def window_after(by: WindowBy, was: Mapping[str, Any], now: Mapping[str, Any]) -> WindowBy:
    """Whose word a row's window is, which was `by`'s before an edit: the operator's where a figure
    that makes the window has changed, or where none has at all, which confirms it. There is none to
    confirm where nobody knows one.

    was, now: all figures of the row by name, before and after the edit.
    """
    confirmed = was == now and by is not WindowBy.FALLBACK
    return WindowBy.OPERATOR if confirmed or not is_same_window(by, was, now) else by


def with_told_window(
    by: WindowBy, was: Mapping[str, Any], changes: Mapping[str, Any], *, told: int | None
) -> Mapping[str, Any]:
    """The figures that an edit of a model stores, by name. told: the window (tokens) in force that
    others told; None: none.

    Where the edit speaks of the window the row's counts from then on, so what was told becomes the
    row's unless the edit names another one: a lower ceiling of prompts is not to bring the limit
    down to it.
    """
    speaks = window_after(by, was, {**was, **changes}) is WindowBy.OPERATOR
    return {"context_length": told, **changes} if speaks and told is not None else changes


def is_same_window(by: WindowBy, was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether figures that make the window of a row are the same. by: whose word it was."""
    return _window(by, was) == _window(by, now)


def _window(by: WindowBy, figures: Mapping[str, Any]) -> tuple[int | None, ...]:
    """What makes the window: the lengths, and where there are none the prompt and the reply. A
    window that nobody knows is not told by a longer reply."""
    names = list(_LENGTHS)
    if not any(figures[name] for name in _LENGTHS):
        names += ["input_tokens"] if by is WindowBy.FALLBACK else ["input_tokens", "output_tokens"]
    return tuple(figures[name] for name in names)
