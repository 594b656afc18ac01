"""Finish reasons: each vendor's word for how a reply ended, in one closed set.

The raw word is kept beside the normalised one wherever a call is stored. A reply that ended in
`length` ran out of room to write; that does not say that its context was full.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import assert_never


class FinishReason(StrEnum):
    """How the provider says a reply ended."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    TOOL_CALLS = "tool_calls"
    REFUSAL = "refusal"
    ERROR = "error"
    CANCELLED = "cancelled"
    OTHER = "other"


# Vendors' words. OpenAI chat and Responses, Anthropic `stop_reason`, Gemini `finishReason` and
# `blockReason`, Ollama `done_reason`, Bedrock `stopReason`, Mistral, Cohere, DeepSeek, GLM, vLLM,
# SGLang, TGI, the Vercel AI SDK.
_WORDS: dict[FinishReason, str] = {
    FinishReason.STOP: """
        stop end_turn stop_sequence eos eos_token end_of_text endoftext end complete completed
        finished done success""",
    FinishReason.LENGTH: """
        length max_tokens max_output_tokens max_completion_tokens max_length model_length
        model_context_window_exceeded context_length error_limit token_limit truncated""",
    FinishReason.CONTENT_FILTER: """
        content_filter content_filtered safety recitation blocklist prohibited_content spii
        language image_safety image_prohibited_content image_recitation model_armor jailbreak
        guardrail_intervened error_toxic sensitive blocked""",
    FinishReason.TOOL_CALLS: "tool_calls tool_call tool_use function_call function_calls",
    FinishReason.REFUSAL: "refusal refused",
    FinishReason.ERROR: """
        error failed failure server_error network_error insufficient_system_resource
        malformed_function_call malformed_response unexpected_tool_call too_many_tool_calls""",
    FinishReason.CANCELLED: """
        cancelled canceled cancel user_cancel user_cancelled abort aborted client_disconnected""",
}

# Written where a vendor has no reason to give, or none yet.
_SAYS_NOTHING = frozenset({"", "none", "null", "unspecified", "queued", "inprogress"})


# No vendor's is longer; what is read of one is kept.
_LONGEST_WORD = 200


def is_known_reason(raw: str) -> bool:
    """Whether a vendor's word is one of those we know, also for having nothing to say."""
    letters = _letters(raw[:_LONGEST_WORD])
    return letters in _SAYS_NOTHING or letters in _REASONS


def normalise_finish_reason(raw: str | None) -> FinishReason | None:
    """Put a vendor's finish reason into our words; letter case and punctuation do not matter.

    None when nothing was said (null, blank, "unspecified"); `other` for a word we do not know.
    """
    letters = _letters((raw or "")[:_LONGEST_WORD])
    if letters in _SAYS_NOTHING:
        return None
    return _REASONS.get(letters, FinishReason.OTHER)


def is_orderly(reason: FinishReason | None) -> bool:
    """Whether the provider finished the reply by itself; None, nothing was said: no."""
    match reason:
        case (
            FinishReason.STOP
            | FinishReason.LENGTH
            | FinishReason.CONTENT_FILTER
            | FinishReason.TOOL_CALLS
            | FinishReason.REFUSAL
        ):
            return True
        case None | FinishReason.ERROR | FinishReason.CANCELLED | FinishReason.OTHER:
            return False
        case _:
            assert_never(reason)


def is_broken_off(reason: FinishReason | None) -> bool:
    """Whether the reply may have ended while the model was still thinking, so that what its
    thoughts hold by then is a draft. None, nothing was said: no."""
    match reason:
        case (
            FinishReason.LENGTH
            | FinishReason.CONTENT_FILTER
            | FinishReason.REFUSAL
            | FinishReason.ERROR
            | FinishReason.CANCELLED
        ):
            return True
        case None | FinishReason.STOP | FinishReason.TOOL_CALLS | FinishReason.OTHER:
            return False
        case _:
            assert_never(reason)


# Every call has one, and there are few.
@lru_cache(maxsize=256)
def _letters(word: str) -> str:
    """Reduce `MAX_TOKENS`, `max-tokens` and `FinishReason.MAX_TOKENS` to the same letters."""
    letters = "".join(char for char in word.lower() if char.isalnum())
    return letters.removeprefix("finishreason")


_REASONS: dict[str, FinishReason] = {
    _letters(word): reason for reason, words in _WORDS.items() for word in words.split()
}
