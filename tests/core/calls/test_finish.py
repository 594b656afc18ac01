"""Finish reasons of every vendor in one set of words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.calls.finish import FinishReason, normalise_finish_reason


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        # OpenAI chat and all that speak it
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        # OpenAI Responses
        ("max_output_tokens", "length"),
        ("completed", "stop"),
        # Anthropic
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "refusal"),
        ("pause_turn", "other"),
        # Gemini, upper case, and its Python enum
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("OTHER", "other"),
        ("FinishReason.MAX_TOKENS", "length"),
        ("FINISH_REASON_UNSPECIFIED", None),
        # Ollama
        ("load", "other"),
        # Bedrock
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        # Mistral, Cohere, DeepSeek, GLM, vLLM, TGI
        ("model_length", "length"),
        ("COMPLETE", "stop"),
        ("ERROR_TOXIC", "content_filter"),
        ("ERROR_LIMIT", "length"),
        ("insufficient_system_resource", "error"),
        ("sensitive", "content_filter"),
        ("abort", "cancelled"),
        ("eos_token", "stop"),
        # the Vercel AI SDK, with dashes; camel case
        ("tool-calls", "tool_calls"),
        ("content-filter", "content_filter"),
        ("endTurn", "stop"),
        # our own words, spaces, nothing, the unknown
        ("error", "error"),
        ("cancelled", "cancelled"),
        ("  Stop  ", "stop"),
        ("", None),
        ("   ", None),
        (None, None),
        ("null", None),
        ("mysterious", "other"),
    ],
)
def test_vendor_words(raw: str | None, reason: str | None) -> None:
    assert normalise_finish_reason(raw) == reason


@pytest.mark.parametrize("reason", FinishReason)
def test_our_own_words_stay_as_they_are(reason: FinishReason) -> None:
    assert normalise_finish_reason(reason.value) is reason


@given(st.text(max_size=20))
@settings(max_examples=40, deadline=None)
def test_letter_case_does_not_matter(raw: str) -> None:
    assert normalise_finish_reason(raw.upper().lower()) == normalise_finish_reason(raw.lower())
