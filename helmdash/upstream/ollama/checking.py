"""The prompt tokens a server reports, checked against the estimate: was the prompt cut?

Ollama cuts the front of a prompt that its window cannot hold, answers 200, and counts what is left.
Advisory: no call fails for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# A cut prompt has half of the window and the two tokens that open a text; templates add some.
_NEAR_HALF = 4
# Beside a half-full window: prose comes out at 1.2 times its tokens with the default estimator.
_OVER_HALF = 1.5
# No text of words takes four times fewer tokens than estimated; rows of spaces may.
_FAR = 4


class Verdict(StrEnum):
    """Whether a prompt reached the model whole."""

    UNKNOWN = "unknown"  # nothing was reported
    PLAUSIBLE = "plausible"
    SUSPECTED_CUT = "suspected_cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCheck:
    """A verdict with its figures, in tokens, and the reason for it, a sentence."""

    verdict: Verdict
    why: str
    estimated_tokens: int
    reported_tokens: int | None
    num_ctx: int


def check_prompt(
    *, estimated_tokens: int, reported_tokens: int | None, num_ctx: int, least_tokens: int = 0
) -> PromptCheck:
    """Compare what the server counted with the estimate and with the window it was given (tokens).

    `least_tokens`: fewer than these the prompt cannot have; 0: not known. `reported_tokens` None:
    unknown, since old servers leave the count out where the prompt was cached.
    """
    verdict, why = _judge(estimated_tokens, reported_tokens, num_ctx, least_tokens)
    return PromptCheck(
        verdict=verdict,
        why=why,
        estimated_tokens=estimated_tokens,
        reported_tokens=reported_tokens,
        num_ctx=num_ctx,
    )


def _judge(estimated: int, reported: int | None, num_ctx: int, least: int) -> tuple[Verdict, str]:
    if reported is None or reported < 1:
        return Verdict.UNKNOWN, "The server reported no prompt tokens."
    if reported < least:
        return Verdict.SUSPECTED_CUT, f"The prompt has at least {least} tokens."
    half = num_ctx // 2
    if abs(reported - half - 2) <= _NEAR_HALF and estimated > reported * _OVER_HALF:
        return Verdict.SUSPECTED_CUT, "The count is what Ollama keeps of a prompt that it cuts."
    if reported * _FAR < estimated:
        return Verdict.SUSPECTED_CUT, "The count is far below the estimate."
    if num_ctx - 1 <= reported <= num_ctx:
        return Verdict.SUSPECTED_CUT, "The window is full to its last token."
    return Verdict.PLAUSIBLE, "The count agrees with the estimate."
