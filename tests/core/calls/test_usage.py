"""Usage of every vendor in one shape; what is not a usable count is unknown, never zero."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.calls.usage import SHAPES, Usage, normalise_usage

NOTHING = Usage()


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        # OpenAI chat: cached tokens are a part of the prompt
        (
            {
                "prompt_tokens": 1000,
                "completion_tokens": 200,
                "total_tokens": 1200,
                "prompt_tokens_details": {"cached_tokens": 768},
                "completion_tokens_details": {"reasoning_tokens": 64},
            },
            (1000, 200, 1200, 768, None, 64),
        ),
        # our own flat shape
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "cached_tokens": 4,
                "cache_write_tokens": 3,
                "reasoning_tokens": 2,
            },
            (10, 5, 15, 4, 3, 2),
        ),
        # only the prompt
        ({"prompt_tokens": 10}, (10, None, None, None, None, None)),
        # OpenRouter with cache writes
        (
            {
                "prompt_tokens": 90,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 80},
            },
            (90, 1, 91, 0, 80, None),
        ),
        # DeepSeek
        (
            {"prompt_tokens": 100, "completion_tokens": 9, "prompt_cache_hit_tokens": 64},
            (100, 9, 109, 64, None, None),
        ),
        # LiteLLM keeps Anthropic's names beside an inclusive prompt count
        (
            {"prompt_tokens": 100, "completion_tokens": 9, "cache_read_input_tokens": 64},
            (100, 9, 109, 64, None, None),
        ),
        # xAI leaves the reasoning out of the completion; the total tells
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "total_tokens": 150,
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
            (100, 50, 150, None, None, 40),
        ),
        # more reasoning than completion, without a total: it was left out
        (
            {"prompt_tokens": 100, "completion_tokens": 10, "reasoning_tokens": 40},
            (100, 50, 150, None, None, 40),
        ),
        # OpenAI Responses
        (
            {
                "input_tokens": 1000,
                "output_tokens": 300,
                "total_tokens": 1300,
                "input_tokens_details": {"cached_tokens": 900},
                "output_tokens_details": {"reasoning_tokens": 250},
            },
            (1000, 300, 1300, 900, None, 250),
        ),
        # Codex
        (
            {
                "input_tokens": 1000,
                "cached_input_tokens": 900,
                "output_tokens": 300,
                "reasoning_output_tokens": 250,
                "total_tokens": 1300,
            },
            (1000, 300, 1300, 900, None, 250),
        ),
        # Anthropic: three disjoint counters
        (
            {
                "input_tokens": 12,
                "cache_creation_input_tokens": 2000,
                "cache_read_input_tokens": 30_000,
                "output_tokens": 400,
            },
            (32_012, 400, 32_412, 30_000, 2000, None),
        ),
        # Anthropic without cache counters
        ({"input_tokens": 12, "output_tokens": 4}, (12, 4, 16, None, None, None)),
        # Anthropic with null cache counters
        (
            {"input_tokens": 12, "cache_creation_input_tokens": None, "output_tokens": 4},
            (12, 4, 16, None, None, None),
        ),
        # Anthropic, everything read from the cache
        (
            {"input_tokens": 0, "cache_read_input_tokens": 500, "output_tokens": 4},
            (500, 4, 504, 500, None, None),
        ),
        # Gemini: thoughts are beside the candidates
        (
            {
                "promptTokenCount": 1000,
                "candidatesTokenCount": 50,
                "thoughtsTokenCount": 150,
                "cachedContentTokenCount": 800,
                "totalTokenCount": 1200,
            },
            (1000, 200, 1200, 800, None, 150),
        ),
        # Gemini on a route that counts thoughts among the candidates
        (
            {
                "promptTokenCount": 1000,
                "candidatesTokenCount": 200,
                "thoughtsTokenCount": 150,
                "totalTokenCount": 1200,
            },
            (1000, 200, 1200, None, None, 150),
        ),
        # Gemini that only thought
        (
            {"promptTokenCount": 10, "thoughtsTokenCount": 90, "totalTokenCount": 100},
            (10, 90, 100, None, None, 90),
        ),
        # Gemini's Python SDK
        (
            {"prompt_token_count": 10, "candidates_token_count": 5, "total_token_count": 15},
            (10, 5, 15, None, None, None),
        ),
        # Ollama
        ({"prompt_eval_count": 26, "eval_count": 298}, (26, 298, 324, None, None, None)),
        # Ollama that left the prompt count out (cached prompt, old server)
        ({"eval_count": 298}, (None, 298, None, None, None, None)),
        # Bedrock Converse: disjoint, camel case
        (
            {
                "inputTokens": 10,
                "outputTokens": 5,
                "totalTokens": 1115,
                "cacheReadInputTokens": 1000,
                "cacheWriteInputTokens": 100,
            },
            (1110, 5, 1115, 1000, 100, None),
        ),
        # the Vercel AI SDK: inclusive, camel case
        (
            {"inputTokens": 1000, "outputTokens": 5, "cachedInputTokens": 900},
            (1000, 5, 1005, 900, None, None),
        ),
        # whole numbers written as floats
        ({"prompt_tokens": 10.0, "completion_tokens": 5.0}, (10, 5, 15, None, None, None)),
        # a completion of 0 beside a real prompt is a count, not a gap
        ({"prompt_tokens": 10, "completion_tokens": 0}, (10, 0, 10, None, None, None)),
        # a bad part leaves the rest usable
        ({"prompt_tokens": 10, "completion_tokens": -1}, (10, None, None, None, None, None)),
        # more cached than sent cannot be
        ({"prompt_tokens": 10, "cached_tokens": 11}, (10, None, None, None, None, None)),
        # fields we do not know
        ({"prompt_tokens": 10, "queue_time": 0.3, "cost": {}}, (10, None, None, None, None, None)),
    ],
)
def test_vendor_shapes(raw: dict[str, Any], usage: tuple[int | None, ...]) -> None:
    prompt, completion, total, cached, cache_write, reasoning = usage

    assert normalise_usage(raw) == Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=total,
        cached_tokens=cached,
        cache_write_tokens=cache_write,
        reasoning_tokens=reasoning,
    )


@pytest.mark.parametrize(
    "count",
    [None, 0, -1, float("nan"), float("inf"), True, "12", 1.5, 2**53 + 1, 10**400, [], {}],
)
@pytest.mark.parametrize(
    "name",
    ["prompt_tokens", "input_tokens", "promptTokenCount", "prompt_eval_count", "inputTokens"],
)
def test_an_unusable_prompt_count_is_unknown(name: str, count: object) -> None:
    usage = normalise_usage({name: count, "completion_tokens": 7, "output_tokens": 7})

    assert usage.prompt_tokens is None
    assert not usage.is_available


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {},
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},  # zeros for "not counted"
        {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0},
        {"promptTokenCount": 0, "candidatesTokenCount": 0},
        {"prompt_tokens": None, "completion_tokens": None},
        {"something": "else"},
        {"prompt_tokens": "many"},
        {"prompt_tokens_details": 3},
    ],
)
def test_a_report_without_a_count_is_no_report(raw: dict[str, Any] | None) -> None:
    assert normalise_usage(raw) == NOTHING


@pytest.mark.parametrize("bad", [-1, "5", float("nan"), True, 0.5])
def test_an_unreadable_cache_counter_makes_an_anthropic_prompt_unknown(bad: object) -> None:
    usage = normalise_usage(
        {"input_tokens": 10, "cache_read_input_tokens": bad, "output_tokens": 5}
    )

    assert usage.prompt_tokens is None
    assert usage.completion_tokens == 5


NAMES = sorted(
    {
        name.partition(".")[0]
        for shape in SHAPES
        for names in (shape.prompt, shape.completion, shape.total, shape.cached, shape.reasoning)
        for name in names
    }
)
COUNTS = st.one_of(
    st.integers(-5, 2**60),
    st.floats(),
    st.none(),
    st.booleans(),
    st.text(max_size=3),
    st.dictionaries(st.sampled_from(["cached_tokens", "reasoning_tokens"]), st.integers(-1, 99)),
)


@given(st.dictionaries(st.sampled_from(NAMES), COUNTS, max_size=8))
@settings(max_examples=150, deadline=None)
def test_every_count_is_unknown_or_sound(raw: dict[str, object]) -> None:
    usage = normalise_usage(raw)

    assert usage.prompt_tokens is None or usage.prompt_tokens > 0
    if usage.prompt_tokens is not None and usage.cached_tokens is not None:
        assert usage.cached_tokens <= usage.prompt_tokens
    if usage.completion_tokens is not None and usage.reasoning_tokens is not None:
        assert usage.reasoning_tokens <= usage.completion_tokens


@pytest.mark.parametrize(
    ("iterations", "prompt", "cached"),
    [
        # server tools: every iteration's prompt holds the one before it
        (
            [
                {"type": "message", "input_tokens": 10, "cache_read_input_tokens": 90_000},
                {"type": "message", "input_tokens": 20, "cache_read_input_tokens": 100_000},
            ],
            100_020,
            100_000,
        ),
        # a compaction says nothing of the context that is left
        (
            [
                {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3500},
                {"type": "message", "input_tokens": 23_000, "output_tokens": 1000},
            ],
            23_000,
            None,
        ),
        ([{"type": "message", "input_tokens": 5, "cache_creation_input_tokens": 7}], 12, None),
        # what cannot be read leaves the sums
        ([], 300_000, 200_000),
        (None, 300_000, 200_000),
        ("message", 300_000, 200_000),
        ([{"type": "message"}, 3], 300_000, 200_000),
        ([{"type": "other", "input_tokens": 5}], 300_000, 200_000),
    ],
)
def test_sums_over_iterations_are_brought_down_to_the_last_message(
    iterations: object, prompt: int, cached: int | None
) -> None:
    raw = {
        "input_tokens": 100_000,
        "cache_read_input_tokens": 200_000,
        "output_tokens": 900,
        "iterations": iterations,
    }

    usage = normalise_usage(raw)

    assert (usage.prompt_tokens, usage.cached_tokens) == (prompt, cached)
    assert usage.completion_tokens == 900
