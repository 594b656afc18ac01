"""Causes: every rule of the table, in the order that decides between them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.facts import gather_facts, is_sound
from helmdash.core.calls.failures import (
    CLASSIFIER_VERSION,
    RULES,
    Advice,
    Cause,
    FailureCause,
    classify,
)
from helmdash.core.calls.finish import FinishReason, normalise_finish_reason
from helmdash.core.calls.usage import Usage, normalise_usage


def judge(**told: Any) -> Cause | None:
    """Classify a call told with these members, as recording does."""
    capture = Capture(model="m", **told)
    return classify(
        capture,
        usage=normalise_usage(capture.usage),
        finish_reason=normalise_finish_reason(capture.finish_reason),
    )


def verdict(**told: Any) -> tuple[str, str, str] | None:
    cause = judge(**told)
    return (cause.name.value, cause.rule, cause.advice.value) if cause else None


BROKEN = '{"steps":[{"order":1,"to'
PLAN = '{"steps":[{"order":1,"tool":"a"}]}'


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        # --- the caller left
        ({"status": "cancelled"}, ("client_disconnected", "client.disconnected", "retry")),
        ({"http_status": 499}, ("client_disconnected", "client.disconnected", "retry")),
        (
            {"error_code": "client_disconnected"},
            ("client_disconnected", "client.disconnected", "retry"),
        ),
        (
            {"finish_reason": "abort", "content": "so far"},
            ("client_disconnected", "client.midway", "retry"),
        ),
        # leaving goes before whatever else went wrong
        (
            {"status": "cancelled", "http_status": 500, "finish_reason": "length"},
            ("client_disconnected", "client.disconnected", "retry"),
        ),
        # --- rate, quota
        ({"http_status": 429}, ("rate_limited", "rate.limited", "retry_later")),
        ({"error_code": "rate_limit_exceeded"}, ("rate_limited", "rate.limited", "retry_later")),
        ({"error_code": "RateLimitError"}, ("rate_limited", "rate.limited", "retry_later")),
        (
            {"http_status": 200, "error_code": "429"},  # OpenRouter, inside a stream
            ("rate_limited", "rate.limited", "retry_later"),
        ),
        (
            {"http_status": 429, "error_code": "RESOURCE_EXHAUSTED"},
            ("rate_limited", "rate.limited", "retry_later"),
        ),
        (
            {"http_status": 429, "error_code": "insufficient_quota"},
            ("rate_limited", "rate.quota", "surface"),
        ),
        (
            {"status": "error", "error_message": "Rate limit reached for requests"},
            ("rate_limited", "rate.limited", "retry_later"),
        ),
        # --- credentials
        ({"http_status": 401}, ("auth_failed", "auth.failed", "fix_credentials")),
        ({"http_status": 403}, ("auth_failed", "auth.failed", "fix_credentials")),
        ({"error_code": "invalid_api_key"}, ("auth_failed", "auth.failed", "fix_credentials")),
        (
            {
                "http_status": 400,
                "error_message": "API key not valid. Please pass a valid API key.",
            },
            ("auth_failed", "auth.failed", "fix_credentials"),
        ),
        # --- real timeouts
        ({"http_status": 408}, ("timed_out", "timeout.real", "retry")),
        ({"http_status": 504}, ("timed_out", "timeout.real", "retry")),
        ({"http_status": 524}, ("timed_out", "timeout.real", "retry")),
        ({"error_code": "timeout"}, ("timed_out", "timeout.real", "retry")),
        ({"error_code": "ReadTimeout"}, ("timed_out", "timeout.real", "retry")),
        ({"error_code": "ETIMEDOUT"}, ("timed_out", "timeout.real", "retry")),
        ({"error_code": "DEADLINE_EXCEEDED"}, ("timed_out", "timeout.real", "retry")),
        (
            {"status": "error", "error_message": "Request timed out."},
            ("timed_out", "timeout.real", "retry"),
        ),
        # --- the network
        ({"error_code": "network"}, ("unreachable", "network.unreachable", "retry_later")),
        ({"error_code": "ECONNREFUSED"}, ("unreachable", "network.unreachable", "retry_later")),
        ({"error_code": "ConnectError"}, ("unreachable", "network.unreachable", "retry_later")),
        (
            {"status": "error", "error_message": "[Errno -2] Name or service not known"},
            ("unreachable", "network.unreachable", "retry_later"),
        ),
        # --- the upstream
        ({"http_status": 500}, ("upstream_error", "upstream.http_5xx", "retry")),
        ({"http_status": 502}, ("upstream_error", "upstream.http_5xx", "retry")),
        ({"http_status": 503}, ("upstream_error", "upstream.overloaded", "retry_later")),
        ({"http_status": 529}, ("upstream_error", "upstream.overloaded", "retry_later")),
        (
            {"error_code": "overloaded_error"},
            ("upstream_error", "upstream.overloaded", "retry_later"),
        ),
        ({"error_code": "http_5xx"}, ("upstream_error", "upstream.error_code", "retry")),
        ({"error_code": "server_error"}, ("upstream_error", "upstream.error_code", "retry")),
        ({"error_code": "never_heard_of"}, ("upstream_error", "upstream.unnamed", "retry")),
        ({"status": "error"}, ("upstream_error", "upstream.unnamed", "retry")),
        # a status that was reached is no network failure
        (
            {"http_status": 500, "error_code": "network"},
            ("upstream_error", "upstream.http_5xx", "retry"),
        ),
        # --- an error inside a 200
        (
            {"http_status": 200, "error_code": "server_error"},
            ("upstream_error_in_200", "upstream.error_in_reply", "retry"),
        ),
        (
            {"http_status": 200, "error_code": "502", "content": "so far"},
            ("upstream_error_in_200", "upstream.error_in_reply", "retry"),
        ),
        (
            {"http_status": 200, "status": "error", "error_message": "Provider returned error"},
            ("upstream_error_in_200", "upstream.error_in_reply", "retry"),
        ),
        (
            {"http_status": 200, "finish_reason": "error", "content": "so far"},
            ("upstream_error_in_200", "upstream.finish_reason", "retry"),
        ),
        (
            {"finish_reason": "MALFORMED_FUNCTION_CALL"},
            ("upstream_error_in_200", "upstream.finish_reason", "retry"),
        ),
        (
            {"http_status": 200, "status": "error"},
            ("upstream_error_in_200", "upstream.unnamed_in_reply", "retry"),
        ),
        # --- filters that answer with an error
        (
            {"http_status": 400, "error_code": "content_filter"},
            ("safety_filtered", "safety.error", "surface"),
        ),
        (
            {"http_status": 400, "error_message": "Content Exists Risk"},
            ("safety_filtered", "safety.error", "surface"),
        ),
        (
            {"http_status": 403, "error_message": "requires moderation on OpenInference"},
            ("safety_filtered", "safety.error", "surface"),
        ),
        # OpenRouter's code is the status again, and its moderation says 403
        (
            {"http_status": 403, "error_code": "403", "error_message": "Your input was flagged"},
            ("safety_filtered", "safety.error", "surface"),
        ),
        (
            {
                "http_status": 403,
                "error_code": "403",
                "error_message": "openai/o1 requires moderation on OpenAI. Your input was flagged "
                'for "violence". No credits were charged.',
            },
            ("safety_filtered", "safety.error", "surface"),
        ),
        # inside a stream
        (
            {"http_status": 200, "error_code": "403", "error_message": "The prompt is flagged."},
            ("safety_filtered", "safety.error", "surface"),
        ),
        (
            {"http_status": 403, "error_message": "Request has been flagged, see our terms."},
            ("safety_filtered", "safety.error", "surface"),
        ),
        # any other 403 is about the key
        (
            {"http_status": 403, "error_code": "403", "error_message": "Key limit exceeded"},
            ("auth_failed", "auth.failed", "fix_credentials"),
        ),
        (
            {
                "http_status": 403,
                "error_code": "permission_error",
                "error_message": "This key was flagged as leaked.",
            },
            ("auth_failed", "auth.failed", "fix_credentials"),
        ),
        # --- the request itself
        ({"http_status": 400}, ("bad_request", "request.refused", "surface")),
        ({"http_status": 422}, ("bad_request", "request.refused", "surface")),
        ({"http_status": 402}, ("bad_request", "request.payment", "fix_credentials")),
        ({"http_status": 404}, ("bad_request", "request.model", "other_model")),
        (
            {"http_status": 404, "error_code": "thread_not_found"},
            ("bad_request", "request.refused", "surface"),
        ),
        ({"error_code": "model_not_found"}, ("bad_request", "request.model", "other_model")),
        ({"error_code": "http_4xx"}, ("bad_request", "request.refused", "surface")),
        (
            {
                "http_status": 400,
                "error_message": "'response_format' of type 'json_object' is not supported",
            },
            ("bad_request", "request.json_mode", "without_json_mode"),
        ),
        (
            {
                "http_status": 400,
                "error_message": "max_tokens is too large: 100000. This model supports at most "
                "16384 completion tokens.",
            },
            ("bad_request", "request.refused", "surface"),
        ),
        # Groq's JSON mode
        (
            {"http_status": 400, "error_code": "json_validate_failed"},
            ("constrained_deadlock", "deadlock.error", "without_json_mode"),
        ),
        # --- nothing went wrong
        ({}, None),
        ({"http_status": 200, "finish_reason": "stop", "content": "Hello."}, None),
        ({"status": "success", "error_message": "rate limit at 90 %"}, None),
    ],
)
def test_what_the_transport_says(
    told: dict[str, Any], expected: tuple[str, str, str] | None
) -> None:
    assert verdict(**told) == expected


@pytest.mark.parametrize(
    "message",
    [
        # OpenAI, DeepSeek, vLLM
        "This model's maximum context length is 8192 tokens. However, you sent 8545 tokens.",
        "Your input exceeds the context window of this model.",
        # Anthropic
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        # Gemini
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        # Bedrock
        "Input is too long for requested model.",
        # xAI
        "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
        # Groq
        "Please reduce the length of the messages or completion.",
        # OpenRouter
        "This endpoint's maximum context length is 131072 tokens. However, you requested 140000.",
        # Mistral
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        # Cohere
        "too many tokens: total number of tokens in the request cannot exceed 4081",
        # Together, TGI
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097",
        "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
        # SGLang
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "Requested tokens (9001) exceed context window of 8192",
        "The prompt (total length 5000) is too long to fit into the model (context length 4096).",
        "You passed 4097 input tokens. However, the model's context length is only 4096 tokens.",
        "Total tokens of image and text exceed max message tokens: 32000",
        "Requested token count exceeds the model's maximum context length of 4096 tokens.",
        # llama.cpp
        "the request exceeds the available context size. try increasing the context size",
        "input is larger than the max context size. skipped",
        # LM Studio
        "Trying to keep the first 5000 tokens when context the overflows.",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        # Ollama
        "prompt too long; exceeded max context length by 4 tokens",
        "the input length exceeds the context length",
        # Vertex AI
        "Unable to submit request because the input token count is 40000 but model only supports",
        # Bedrock: Titan, Cohere, Nova
        "Too many input tokens. Max input tokens: 8192, request input token count: 9000",
        "Malformed input request: expected maxLength: 2048, actual: 5000",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
        # Azure
        "Input tokens exceed the configured limit of 272000 tokens.",
        # SiliconFlow
        "number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit.",
        # Moonshot, MiniMax, Zhipu, Qwen, GitHub
        "Invalid request: Your request exceeded model token limit: 131072",
        "Context length 9001 is greater than max_seq_len 4096",
        "invalid params, context window exceeds limit",
        "Prompt exceeds max length",
        "Range of input length should be [1, 30720]",
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        "prompt token count of 130000 exceeds the limit of 128000",
    ],
)
@pytest.mark.parametrize("http_status", [400, 413, 200, 500, None])
def test_every_vendors_wording_of_a_full_context(message: str, http_status: int | None) -> None:
    told = verdict(
        http_status=http_status,
        status="error",
        error_code="invalid_request_error",
        error_message=message,
    )

    assert told == ("context_overflow", "context.error", "shorten_prompt")


@pytest.mark.parametrize(
    "code",
    [
        "context_length_exceeded",
        "ContextWindowExceededError",
        "exceed_context_size_error",
        "string_above_max_length",
        "request_too_large",
    ],
)
@pytest.mark.parametrize("http_status", [400, 413, 200, None])
def test_every_code_of_a_full_context(code: str, http_status: int | None) -> None:
    assert verdict(http_status=http_status, error_code=code) == (
        "context_overflow",
        "context.error",
        "shorten_prompt",
    )


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        # as our gateway records it: nobody was asked
        ({"status": "error", "overhead_ms": 1, "raw_content_len": 0}, "context.budget"),
        # a guard at a caller's, with the status it answered
        ({"http_status": 400}, "context.budget"),
        ({"http_status": 413}, "context.budget"),
        # something came back, so it had been sent
        ({"http_status": 200}, "context.error"),
        ({"status": "success"}, "context.error"),
        ({"content": "so far"}, "context.error"),
        ({"ttft_ms": 5}, "context.error"),
    ],
)
def test_a_request_over_its_budget_was_not_sent(told: dict[str, Any], rule: str) -> None:
    assert verdict(error_code="over_budget", **told) == (
        "context_overflow",
        rule,
        "shorten_prompt",
    )


def test_a_budget_of_money_is_no_full_context() -> None:
    cause = judge(http_status=429, error_code="over_budget")

    assert cause is not None
    assert cause.name is FailureCause.RATE_LIMITED


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"status": "cancelled"},  # the client did not leave: it was left
        {"http_status": 200, "content": "so far", "ttft_ms": 90},
        {"http_status": 499, "error_message": "The connection was reset; timed out."},
    ],
)
def test_a_call_that_we_broke_off_ourselves(told: dict[str, Any]) -> None:
    assert verdict(error_code="gateway_stopped", **told) == (
        "unreachable",
        "gateway.stopped",
        "retry",
    )


@pytest.mark.parametrize("http_status", [None, 301, 302, 307, 308])
def test_a_redirect_is_told_as_one_whatever_it_says(http_status: int | None) -> None:
    message = "It redirects to https://elsewhere.example/?timeout=1, too many requests."

    assert verdict(
        http_status=http_status, error_code="upstream_redirected", error_message=message
    ) == ("unreachable", "upstream.redirected", "surface")


def test_a_bare_413_is_a_prompt_that_is_too_large() -> None:
    assert verdict(http_status=413) == ("context_overflow", "context.http_413", "shorten_prompt")


@pytest.mark.parametrize("http_status", [413, 429])
def test_too_many_tokens_a_minute_is_a_rate_and_not_a_full_context(http_status: int) -> None:
    told = judge(
        http_status=http_status,
        error_code="rate_limit_exceeded",
        error_message="Request too large for model `llama-3.1-8b-instant` on tokens per minute "
        "(TPM): Limit 6000, Requested 7000. Please reduce your message size.",
    )

    assert told is not None
    assert told.name is FailureCause.RATE_LIMITED


@pytest.mark.parametrize(
    ("finish", "content", "expected"),
    [
        # helmdeck ADR 051's matrix: empty and broken replies by finish reason.
        ("content_filter", "", ("safety_filtered", "safety.finish_reason", "surface")),
        ("length", "", ("length_truncated", "length.empty", "raise_output")),
        (None, "", ("likely_timeout", "timeout.silent", "shorten_prompt")),
        ("length", BROKEN, ("length_truncated", "length.structured", "raise_output")),
        ("content_filter", BROKEN, ("safety_filtered", "safety.finish_reason", "surface")),
        (None, BROKEN, ("constrained_deadlock", "deadlock.reply", "retry")),
        ("stop", BROKEN, ("constrained_deadlock", "deadlock.reply", "retry")),
        # It called this one a timeout; the model said that it had finished.
        ("stop", "", ("empty_completion", "empty.reply", "retry")),
        # It knew none of the vendors' other words.
        ("SAFETY", "", ("safety_filtered", "safety.finish_reason", "surface")),
        ("MAX_TOKENS", BROKEN, ("length_truncated", "length.structured", "raise_output")),
        ("max_tokens", BROKEN, ("length_truncated", "length.structured", "raise_output")),
        ("end_turn", BROKEN, ("constrained_deadlock", "deadlock.reply", "retry")),
        ("refusal", "", ("refused", "refusal.finish_reason", "other_model")),
        ("refusal", "I would rather not.", ("refused", "refusal.finish_reason", "other_model")),
        # It called prose a deadlock.
        ("stop", "I cannot plan that.", ("undecodable", "undecodable.reply", "retry")),
        ("stop", "As [1] says, no.", ("undecodable", "undecodable.reply", "retry")),
        ("mysterious", "", ("empty_completion", "empty.reply", "retry")),
        # the context was full, not the output cap
        (
            "model_context_window_exceeded",
            BROKEN,
            ("context_overflow", "context.finish_reason", "shorten_prompt"),
        ),
        # usable
        ("stop", PLAN, None),
        ("end_turn", f"<think>hm</think>```json\n{PLAN}\n```", None),
        ("stop", f"Here you go: {PLAN}", None),
        ("content_filter", PLAN, None),
        ("tool_calls", "", None),
        ("tool_use", "", None),
    ],
)
def test_a_structured_reply_by_finish_reason_and_content(
    finish: str | None, content: str, expected: tuple[str, str, str] | None
) -> None:
    assert verdict(purpose="plan", finish_reason=finish, content=content) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        # A plain reply with text that ended in length is what it is: a long reply.
        ({"finish_reason": "length", "content": "Once upon a time"}, None),
        ({"finish_reason": "length", "raw_content_len": 900}, None),
        ({"finish_reason": "length"}, None),
        ({"finish_reason": "model_context_window_exceeded", "content": "Once upon"}, None),
        # Plain text need not be JSON.
        ({"finish_reason": "stop", "content": BROKEN}, None),
        # Filtered in the middle: what is there can be read.
        ({"finish_reason": "content_filter", "content": "The first half"}, None),
        # Filtered, and nothing known about the content: the filter's word stands.
        (
            {"finish_reason": "content_filter"},
            ("safety_filtered", "safety.finish_reason", "surface"),
        ),
        # Neither content nor length told: no verdict on emptiness.
        ({"finish_reason": "stop"}, None),
        ({"http_status": 200}, None),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": 0}, "finish_reason": "stop"}, None),
        # Told by its length alone.
        (
            {"http_status": 200, "raw_content_len": 0},
            ("likely_timeout", "timeout.silent", "shorten_prompt"),
        ),
        (
            {"finish_reason": "stop", "raw_content_len": 0},
            ("empty_completion", "empty.reply", "retry"),
        ),
        (
            {"finish_reason": "length", "raw_content_len": 0},
            ("length_truncated", "length.empty", "raise_output"),
        ),
        # Whitespace is nothing.
        ({"content": " \n "}, ("likely_timeout", "timeout.silent", "shorten_prompt")),
        # An empty reply that was an error already has its cause.
        ({"http_status": 500, "content": ""}, ("upstream_error", "upstream.http_5xx", "retry")),
        # A failed call without a reply is not silent: it was never answered.
        ({"status": "error", "content": ""}, ("upstream_error", "upstream.unnamed", "retry")),
        # Tool calls need no text.
        ({"finish_reason": "tool_calls", "content": ""}, None),
        ({"finish_reason": "tool_calls", "raw_content_len": 0}, None),
        # The caller's own remark on a reply that ended in order.
        (
            {
                "http_status": 200,
                "status": "error",
                "finish_reason": "stop",
                "content": "Hi.",
                "error_message": "loudness check failed",
            },
            None,
        ),
        ({"http_status": 200, "error_code": "artifact_failed", "finish_reason": "stop"}, None),
    ],
)
def test_a_plain_reply(told: dict[str, Any], expected: tuple[str, str, str] | None) -> None:
    assert verdict(**told) == expected


EXHAUSTED = ("reasoning_exhausted", "length.reasoning", "raise_output")


@pytest.mark.parametrize(
    "told",
    [
        {"content": "", "usage": {"completion_tokens": 600, "reasoning_tokens": 600}},
        {"raw_content_len": 0, "usage": {"prompt_tokens": 9, "reasoning_tokens": 600}},
        {"content": "<think>hm, hm"},
        {"content": "<think>hm</think>\n"},
        {"content": "", "raw_content_len": 2549},
        {"content": "<think>hm", "purpose": "plan", "response_format": "json_object"},
    ],
)
def test_a_cap_spent_on_thoughts_is_told_apart(told: dict[str, Any]) -> None:
    assert verdict(finish_reason="length", **told) == EXHAUSTED


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        # JSON is due for a structured purpose, or in a JSON mode.
        ({"purpose": "route"}, ("undecodable", "undecodable.reply", "retry")),
        ({"purpose": "filter"}, ("undecodable", "undecodable.reply", "retry")),
        ({"purpose": " Verify "}, ("undecodable", "undecodable.reply", "retry")),
        ({"response_format": "json_object"}, ("undecodable", "undecodable.reply", "retry")),
        ({"response_format": "json_schema"}, ("undecodable", "undecodable.reply", "retry")),
        ({"response_format": "text"}, None),
        ({"purpose": "chat"}, None),
        # What the caller made of it goes before what we read.
        ({"purpose": "plan", "decoded": True}, None),
        ({"decoded": False}, ("undecodable", "undecodable.reply", "retry")),
    ],
)
def test_where_json_is_due_prose_is_undecodable(
    told: dict[str, Any], expected: tuple[str, str, str] | None
) -> None:
    assert verdict(finish_reason="stop", content="It rains.", **told) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        # shaped like JSON and broken: without the JSON mode next time, where there was one
        (
            {"content": BROKEN, "response_format": "json_object"},
            ("constrained_deadlock", "deadlock.json_mode", "without_json_mode"),
        ),
        ({"content": BROKEN}, ("constrained_deadlock", "deadlock.reply", "retry")),
        ({"content": f"```json\n{BROKEN}"}, ("constrained_deadlock", "deadlock.reply", "retry")),
        (
            {"content": f"<think>hm</think>{BROKEN}"},
            ("constrained_deadlock", "deadlock.reply", "retry"),
        ),
        (
            {"content": f"Here is the plan: {BROKEN}"},
            ("constrained_deadlock", "deadlock.reply", "retry"),
        ),
        ({"content": '{"a": oops}'}, ("constrained_deadlock", "deadlock.reply", "retry")),
        ({"content": "[1, 2"}, ("constrained_deadlock", "deadlock.reply", "retry")),
        # the caller managed to mend it
        ({"content": BROKEN, "decoded": True}, None),
        # the caller found it in thoughts that never close
        ({"content": f"<think>hm {PLAN}", "decoded": True}, None),
        ({"content": "", "raw_content_len": 80, "decoded": True}, None),
        ({"content": f"<think>hm {PLAN}"}, ("empty_completion", "empty.reply", "retry")),
        (
            {"content": f"<think>hm {PLAN}", "decoded": False},
            ("empty_completion", "empty.reply", "retry"),
        ),
        # nothing at all came, whatever its reader says
        ({"content": " ", "decoded": True}, ("empty_completion", "empty.reply", "retry")),
        ({"raw_content_len": 0, "decoded": True}, ("empty_completion", "empty.reply", "retry")),
        # the caller could not use what is JSON: not a deadlock
        ({"content": PLAN, "decoded": False}, ("undecodable", "undecodable.schema", "retry")),
        # unseen
        ({"decoded": False}, ("undecodable", "undecodable.reply", "retry")),
        ({"decoded": False, "raw_content_len": 80}, ("undecodable", "undecodable.reply", "retry")),
        (
            {"decoded": False, "raw_content_len": 80, "response_format": "json_object"},
            ("constrained_deadlock", "deadlock.json_mode", "without_json_mode"),
        ),
        ({"decoded": False, "content": ""}, ("empty_completion", "empty.reply", "retry")),
        # told by the caller's error code
        (
            {"http_status": 200, "error_code": "decode", "content": "It rains."},
            ("undecodable", "undecodable.reply", "retry"),
        ),
        (
            {"http_status": 200, "error_code": "invalid_json", "content": BROKEN},
            ("constrained_deadlock", "deadlock.reply", "retry"),
        ),
        # a plan that can be read and says nothing
        ({"content": '{"steps":[]}'}, ("empty_plan", "plan.empty", "other_model")),
        ({"content": '{"steps":null}'}, ("empty_plan", "plan.empty", "other_model")),
        ({"content": "{}"}, ("empty_plan", "plan.empty", "other_model")),
        ({"content": "null"}, ("empty_plan", "plan.empty", "other_model")),
        ({"content": "[]"}, ("empty_plan", "plan.empty", "other_model")),
        # another shape of plan is none of our business
        ({"content": '{"tasks":["a"]}'}, None),
        ({"content": '["a"]'}, None),
    ],
)
def test_a_finished_plan(told: dict[str, Any], expected: tuple[str, str, str] | None) -> None:
    assert verdict(purpose="plan", finish_reason="stop", **told) == expected


@pytest.mark.parametrize(
    ("decoded", "rule"), [(True, None), (None, "timeout.silent"), (False, "timeout.silent")]
)
def test_an_answer_read_out_of_thoughts_is_not_silence(
    decoded: bool | None, rule: str | None
) -> None:
    cause = judge(purpose="plan", status="success", content=f"<think>hm {PLAN}", decoded=decoded)

    assert (cause.rule if cause else None) == rule


def test_an_empty_list_is_an_answer_to_anything_but_a_plan() -> None:
    assert verdict(purpose="filter", finish_reason="stop", content='{"ids":[]}') is None


@pytest.mark.parametrize(
    ("variant", "rule", "advice"),
    [
        ("full_steps", "length.full_steps", "single_pick"),
        ("single_pick", "length.structured", "raise_output"),
        (None, "length.structured", "raise_output"),
    ],
)
def test_a_cut_plan_is_asked_for_one_step_at_a_time(
    variant: str | None, rule: str, advice: str
) -> None:
    told = verdict(
        purpose="plan", prompt_variant=variant, finish_reason="length", raw_content_len=2549
    )

    assert told == ("length_truncated", rule, advice)


GATEWAY = {"overhead_ms": 1, "raw_content_len": 0}  # it saw the call, and no visible text


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        # --- the client left
        (
            {**GATEWAY, "status": "cancelled", "error_code": "client_disconnected"},
            ("client_disconnected", "client.before_first_byte", "retry"),
        ),
        (
            {**GATEWAY, "status": "cancelled", "http_status": 200, "ttft_ms": 90},
            ("client_disconnected", "client.midway", "retry"),
        ),
        # the first byte was reasoning
        (
            {**GATEWAY, "status": "cancelled", "http_status": 200, "reasoning_len": 12},
            ("client_disconnected", "client.midway", "retry"),
        ),
        # a caller that only says that it cancelled need not have measured the first byte
        ({"status": "cancelled"}, ("client_disconnected", "client.disconnected", "retry")),
        # --- out of time
        (
            {**GATEWAY, "http_status": 200, "ttft_ms": 90, "reasoning_len": 4000}
            | {"error_code": "read_timeout"},
            ("timed_out", "timeout.reasoning", "other_model"),
        ),
        # reported tokens tell the same
        (
            {"http_status": 504, "content": ""}
            | {"usage": {"prompt_tokens": 5, "completion_tokens": 9, "reasoning_tokens": 9}},
            ("timed_out", "timeout.reasoning", "other_model"),
        ),
        (
            {**GATEWAY, "error_code": "read_timeout"},
            ("timed_out", "timeout.before_first_byte", "retry"),
        ),
        (
            {**GATEWAY, "error_code": "connect_timeout"},
            ("timed_out", "timeout.before_first_byte", "retry"),
        ),
        # it had begun to answer
        (
            {"overhead_ms": 1, "http_status": 200, "ttft_ms": 90, "content": "The answer is"}
            | {"reasoning_len": 40, "error_code": "read_timeout"},
            ("timed_out", "timeout.real", "retry"),
        ),
        # --- the upstream broke off
        (
            {**GATEWAY, "http_status": 200, "content": "so far", "error_code": "closed_early"},
            ("upstream_error", "upstream.closed_early", "retry"),
        ),
        # not a byte of the reply, but a status
        (
            {**GATEWAY, "http_status": 200, "error_code": "closed_early"},
            ("upstream_error", "upstream.closed_early", "retry"),
        ),
        (
            {**GATEWAY, "http_status": 200, "ttft_ms": 5, "error_code": "connection_closed"},
            ("upstream_error", "upstream.closed_early", "retry"),
        ),
        # before there was any status: not reached
        (
            {**GATEWAY, "error_code": "connection_closed"},
            ("unreachable", "network.unreachable", "retry_later"),
        ),
        # --- a 200 that is not what it should be
        (
            {**GATEWAY, "http_status": 200, "error_code": "undecodable_reply"},
            ("upstream_error_in_200", "upstream.undecodable", "retry"),
        ),
        (
            {"http_status": 200, "content": "so far", "error_code": "undecodable_stream"},
            ("upstream_error_in_200", "upstream.undecodable", "retry"),
        ),
        # a page of HTML behind a 502 is a 502
        (
            {**GATEWAY, "http_status": 502, "error_code": "undecodable_reply"},
            ("upstream_error", "upstream.http_5xx", "retry"),
        ),
        (
            {"http_status": 200, "content": "so far", "error_code": "overloaded_error"},
            ("upstream_error_in_200", "upstream.error_in_reply", "retry"),
        ),
        # --- a 200 with nothing
        ({**GATEWAY, "http_status": 200}, ("likely_timeout", "timeout.silent", "shorten_prompt")),
        (
            {**GATEWAY, "http_status": 200, "finish_reason": "stop"},
            ("empty_completion", "empty.reply", "retry"),
        ),
        # all of the output went into reasoning
        (
            {**GATEWAY, "http_status": 200, "finish_reason": "length", "reasoning_len": 900},
            ("reasoning_exhausted", "length.reasoning", "raise_output"),
        ),
        # tools are called without a word, and Gemini and Ollama call that a stop
        (
            {**GATEWAY, "http_status": 200, "finish_reason": "stop", "tool_calls": 2},
            None,
        ),
        ({**GATEWAY, "http_status": 200, "tool_calls": 1}, None),
        (
            {**GATEWAY, "http_status": 200, "finish_reason": "stop", "tool_calls": 0},
            ("empty_completion", "empty.reply", "retry"),
        ),
    ],
)
def test_what_a_gateway_sees(told: dict[str, Any], expected: tuple[str, str, str] | None) -> None:
    assert verdict(**told) == expected


# helmdeck ADR 053's table, with what each row really was: three filter passes, each followed by its
# plan.
ADR_053 = [
    # end, latency, purpose, finish, completion tokens, characters, cause
    ("14:36:59", 34_139, "filter", "length", 600, 2549, "length_truncated"),
    ("14:38:34", 94_958, "plan", "stop", 1547, 685, None),
    ("14:38:49", 14_776, "filter", "stop", 423, 71, None),
    ("14:39:17", 28_854, "plan", "stop", 710, 791, None),
    ("14:39:33", 15_184, "filter", "length", 600, 2627, "length_truncated"),
    ("14:41:03", 90_199, "plan", "stop", 1535, 743, None),
]


@pytest.mark.parametrize("row", ADR_053, ids=lambda row: row[0])
def test_the_six_calls_of_adr_053(row: tuple[str, int, str, str, int, int, str | None]) -> None:
    _, latency_ms, purpose, finish, completion, characters, expected = row

    cause = judge(
        purpose=purpose,
        http_status=200,
        finish_reason=finish,
        latency_ms=latency_ms,
        raw_content_len=characters,
        usage={"prompt_tokens": 4000, "completion_tokens": completion},
    )

    assert (cause and cause.name) == expected
    if cause is not None:
        assert "600 output tokens" in cause.detail


def test_the_detail_tells_the_facts() -> None:
    cause = judge(http_status=400, error_code="context_length_exceeded", error_message="Too much.")

    assert cause is not None
    assert cause.detail == (
        "The provider says that the prompt does not fit (HTTP 400, context_length_exceeded: "
        "Too much)."
    )


@pytest.mark.parametrize(
    ("told", "error"),
    [
        (
            {"error_code": "over_budget", "error_message": "About 9 tokens, 8 allowed. "},
            (
                "The request is larger than its model's budget and was not sent "
                "(over_budget: About 9 tokens, 8 allowed)."
            ),
        ),
        (
            {"error_code": "gateway_stopped"},
            "HelmDash was stopped during the call (gateway_stopped).",
        ),
        (
            {"error_code": "upstream_redirected", "http_status": 307, "error_message": "See x.."},
            (
                "The upstream redirects elsewhere, which is not followed "
                "(HTTP 307, upstream_redirected: See x)."
            ),
        ),
        ({"http_status": 500, "error_message": "."}, "The provider failed (HTTP 500)."),
    ],
)
def test_a_detail_ends_in_one_full_stop(told: dict[str, Any], error: str) -> None:
    cause = judge(**told)

    assert cause is not None
    assert cause.detail == error


def test_braces_in_an_error_are_told_as_they_are() -> None:
    cause = judge(http_status=400, error_message='{"error": {spent}}')

    assert cause is not None
    assert '{"error": {spent}}' in cause.detail


def test_a_long_error_is_cut_in_the_detail() -> None:
    cause = judge(http_status=500, error_message="x" * 5000)

    assert cause is not None
    assert len(cause.detail) < 400


def test_the_rules_have_a_version() -> None:
    assert CLASSIFIER_VERSION == "causes-8"


def test_rule_ids_are_unique_and_every_cause_can_be_given() -> None:
    ids = [rule.id for rule in RULES]

    assert len(set(ids)) == len(ids)
    assert {rule.name for rule in RULES} == set(FailureCause)
    assert {rule.advice for rule in RULES} == set(Advice)


TEXTS = st.none() | st.sampled_from(
    [
        "",
        " ",
        "ok",
        BROKEN,
        PLAN,
        "{}",
        "<think>x",
        "x</think>",
        "[1]",
        "```",
        "\ud800",
        '{"a":1e999}',
    ]
)
WORDS = st.none() | st.sampled_from(
    [
        "timeout",
        "429",
        "context_length_exceeded",
        "decode",
        "{x}",
        "\ud800",
        "prompt is too long",
        "server_error",
        "network",
        "upstream_redirected",
        "over_budget",
        "Too much.",
        "",
    ]
)


@given(
    content=TEXTS,
    raw_content_len=st.none() | st.integers(-1, 99),
    finish=st.none() | st.sampled_from(FinishReason),
    status=st.sampled_from([None, "success", "error", "cancelled"]),
    http_status=st.none() | st.sampled_from([0, 200, 204, 301, 400, 413, 429, 500, 503, 999]),
    error_code=WORDS,
    error_message=WORDS,
    purpose=st.sampled_from(["chat", "plan", "filter", ""]),
    response_format=st.sampled_from([None, "", "json_object", "text"]),
    decoded=st.sampled_from([None, True, False]),
    reasoning=st.none() | st.integers(0, 9),
)
@settings(max_examples=300, deadline=None)
def test_every_call_has_one_verdict_or_none(
    finish: FinishReason | None, reasoning: int | None, **told: Any
) -> None:
    cause = judge(
        finish_reason=finish.value if finish else None,
        usage={"prompt_tokens": 1, "reasoning_tokens": reasoning},
        **told,
    )

    assert cause is None or (cause.detail.endswith(".") and "\n" not in cause.detail)
    assert cause is None or not cause.detail.endswith((".).", ".."))
    if told["status"] == "cancelled":
        assert cause is not None
        assert cause.name is FailureCause.CLIENT_DISCONNECTED


@given(
    content=TEXTS,
    finish=st.sampled_from([None, "stop", "tool_calls", "length"]),
    status=st.sampled_from([None, "success", "error"]),
    http_status=st.sampled_from([None, 200, 500]),
    error_code=st.sampled_from([None, "", "decode", "429"]),
    purpose=st.sampled_from(["chat", "plan"]),
    decoded=st.sampled_from([None, True, False]),
)
@settings(max_examples=200, deadline=None)
def test_what_looks_sound_at_a_glance_breaks_no_rule(finish: str | None, **told: Any) -> None:
    facts = gather_facts(
        Capture(model="m", finish_reason=finish, **told), Usage(), normalise_finish_reason(finish)
    )

    if is_sound(facts):
        assert [rule.id for rule in RULES if rule.applies(facts)] == []
