"""What is counted of a call for learning: by model, upstream, the model's version, purpose and
variant (core.evidence).

    n                    calls                      j, j+       that tell of the size, clean
    xt:<slice>, xt+:     by tokens reported         xb:, xb+:   by bytes sent; + is the clean ones
    w:<tokens>           of suspected cuts, the count       r:<bucket>  bytes per token
    y:<bucket>, yl:      replies that ended, or met their limit, by their tokens; yr:, ylr: those
                         with reasoning
    s, s+, sj, sj+       structured replies, clean; those asked for in JSON mode
    xg:<slice>, xg+:     structured calls by the bytes of their catalog, where one was fitted
    zt:<band>, zb:, g:   the same three by bands, of rollups from before there were slices
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from helmdash.core.budgets.health import HealthReason
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.outcomes import CallOutcome, outcome_of, says_of_size
from helmdash.core.rollups.bands import size_slice
from helmdash.core.rollups.buckets import bucket_of
from helmdash.core.rollups.facts import CallFacts, grouped_variant, key_of

# Ratios are counted as whole thousandths of a byte per token.
RATIO_UNIT: Final = 1_000
# The template of a chat is a dozen tokens: of shorter prompts it is a tenth and more.
LEAST_RATIO_TOKENS: Final = 100
# What ends a call whatever the size of its prompt.
NOT_OF_SIZE: Final = frozenset(cause for cause in FailureCause if not says_of_size(cause))
# Many texts in one request: their sum is no prompt.
SUMMED: Final = frozenset({"embedding", "embed", "rerank"})
STRUCTURED: Final = frozenset({"plan", "route", "filter", "verify"})
ENDED: Final = frozenset({FinishReason.STOP.value, FinishReason.TOOL_CALLS.value})
CUT_OFF: Final = FinishReason.LENGTH.value
_OVER: Final = ENDED | {CUT_OFF}
_SUSPECTED_CUT: Final = HealthReason.SUSPECTED_CUT.value
# The heads of words that count replies by tokens: ended or cut off, without and with reasoning.
REPLY_HEADS: Final = ("y", "yl", "yr", "ylr")


class EvidenceKind(StrEnum):
    """Which of the words below a figure is learned from.

    queries.calls.evidence_terms finds the calls.
    """

    INPUT_TOKENS = "input_tokens"  # xt
    INPUT_BYTES = "input_bytes"  # xb
    WINDOW = "window"  # w
    OUTPUT = "output"  # y, yl, yr, ylr
    ESTIMATOR = "estimator"  # r
    STRUCTURED = "structured"  # s
    CATALOG = "catalog"  # xg


def key_of_evidence(facts: CallFacts) -> tuple[str, ...]:
    """The model, its upstream and version, what it was asked for and how: like calls have one."""
    return (
        key_of(facts),
        facts.provider,
        facts.upstream_model or "",
        facts.purpose,
        grouped_variant(facts),
    )


def evidence_words(facts: CallFacts) -> list[str]:
    """The words that this call adds one to; asked of every call."""
    found = ["n"]
    cause, prompt = facts.cause, facts.prompt_tokens
    is_clean = not cause and facts.status == "success"
    is_whole = facts.level_reason != _SUSPECTED_CUT
    if facts.purpose not in SUMMED and not _says_nothing(facts):
        found.append("j")
        sizes = []
        if prompt is not None and is_whole:
            sizes.append(("xt", size_slice(prompt)))
        if facts.sent_bytes is not None:
            sizes.append(("xb", size_slice(facts.sent_bytes)))
        found += [f"{head}:{number}" for head, number in sizes]
        if is_clean:
            found.append("j+")
            found += [f"{head}+:{number}" for head, number in sizes]
        if facts.purpose in STRUCTURED:
            found += _of_structured(facts, is_clean)
    if not is_whole and prompt is not None:
        found.append(f"w:{prompt}")
    ratio = ratio_of(facts.sent_bytes, prompt) if is_whole else None
    if ratio is not None:
        found.append(f"r:{bucket_of(ratio)}")
    finish = facts.finish_reason
    if facts.completion_tokens is not None and finish in _OVER:
        head = ("yl" if finish == CUT_OFF else "y") + "r" * bool(facts.reasoning_tokens)
        found.append(f"{head}:{bucket_of(facts.completion_tokens)}")
    return found


def ratio_of(sent_bytes: int | None, prompt_tokens: int | None) -> int | None:
    """Thousandths of a byte per token of one prompt; None where it is too short or not known."""
    if not sent_bytes or prompt_tokens is None or prompt_tokens < LEAST_RATIO_TOKENS:
        return None
    return sent_bytes * RATIO_UNIT // prompt_tokens


def _of_structured(facts: CallFacts, is_clean: bool) -> Iterator[str]:
    if outcome_of(cause=facts.cause, status=facts.status) is CallOutcome.FAILED:
        return
    yield from _counted("s", None, is_clean)
    if (facts.response_format or "").strip().lower().startswith("json"):
        yield from _counted("sj", None, is_clean)
    if facts.trim_after_bytes is not None:
        yield from _counted("xg", size_slice(facts.trim_after_bytes), is_clean)


def _counted(head: str, number: int | None, is_clean: bool) -> Iterator[str]:
    rest = "" if number is None else f":{number}"
    yield f"{head}{rest}"
    if is_clean:
        yield f"{head}+{rest}"


def _says_nothing(facts: CallFacts) -> bool:
    if facts.status == "cancelled" and not facts.cause:
        return True
    return bool(facts.cause) and FailureCause(facts.cause) in NOT_OF_SIZE
