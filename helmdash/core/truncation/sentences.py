"""A suspected cut in sentences: what was expected, what came, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

from helmdash.core.truncation.detector import CUTS_VERSION
from helmdash.core.truncation.sizes import CutRule, Suspicion

_ADVICE = {
    CutRule.HALF_WINDOW: (
        "Raise num_ctx to what the prompt needs (Ollama's OpenAI route cannot set it: use "
        "/api/chat), or lower the budget's input tokens below the window."
    ),
    CutRule.TRUNCATION_AUTO: (
        "Send truncation: disabled to be told when a prompt is too long, or send less of the "
        "history."
    ),
    CutRule.WHOLE_WINDOW: (
        "Raise the server's window (num_ctx; with Ollama by its native /api/chat), or lower the "
        "budget's input tokens below it."
    ),
}
_OTHER_ADVICE = (
    "Raise the window if the server is yours (num_ctx; with Ollama by its native /api/chat), or "
    "lower the budget's input tokens below the largest count that was reported whole."
)


def evidence(suspicion: Suspicion) -> Mapping[str, object]:
    """What is stored and shown of a suspicion. The detail is for people."""
    return {
        "version": CUTS_VERSION,
        "rule": suspicion.rule.value,
        "detail": describe(suspicion),
        "expected_tokens": suspicion.expected_tokens,
        "reported_tokens": suspicion.reported_tokens,
    }


def describe(suspicion: Suspicion) -> str:
    """The evidence and the next step, in two or three sentences."""
    advice = _ADVICE.get(suspicion.rule, _OTHER_ADVICE)
    return f"{_expected(suspicion)}{_reported(suspicion)} {advice}"


def _expected(suspicion: Suspicion) -> str:
    if suspicion.expected_tokens is None:
        return ""
    about = f"About {_rounded(suspicion.expected_tokens):,} tokens were expected for "
    return f"{about}{_size(suspicion.sent_bytes)} ({_source(suspicion)}); "


def _source(suspicion: Suspicion) -> str:
    ratio = f"{suspicion.ratio} bytes a token"
    if suspicion.calls == 0:
        return f"{ratio}, as text usually has"
    if suspicion.calls == 1:
        return f"{ratio} in the call before"
    return f"{ratio} over {suspicion.calls} calls"


def _reported(suspicion: Suspicion) -> str:
    told = f"{suspicion.reported_tokens:,} were reported"
    if suspicion.expected_tokens is None:
        told = f"{suspicion.reported_tokens:,} tokens were reported"
    window = f"{suspicion.window:,}" if suspicion.window is not None else ""
    match suspicion.rule:
        case CutRule.HALF_WINDOW:
            return f"{told}, half of a window of {window}."
        case CutRule.WHOLE_WINDOW:
            return f"{told}, which fills a window of {window} to the end."
        case CutRule.PINNED:
            return f"{told}, the same count as for calls of other sizes."
        case CutRule.FELL:
            return f"{told}, fewer than for the call before, though more was sent."
        case CutRule.STALLED:
            return f"{told}, no more than before, though more was sent."
        case CutRule.STILL_CUT:
            return f"{told}. The calls before it look cut as well."
        case CutRule.OUT_OF_BAND:
            return f"{told}."
        case CutRule.TRUNCATION_AUTO:
            return f"{told}. The request asked for it: with truncation: auto the oldest goes first."


def _rounded(tokens: int) -> int:
    """Two digits: it is an expectation, not a count."""
    digits = max(len(str(tokens)) - 2, 0)
    return round(tokens, -digits)


def _size(size: int) -> str:
    return f"{size:,} bytes" if size < 10_000 else f"{size / 1000:,.0f} KB"
