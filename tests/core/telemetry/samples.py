"""What each dialect exports of one call, and the true total of its prompt."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

SEMCONV_READ = "gen_ai.usage.cache_read.input_tokens"
SEMCONV_WRITE = "gen_ai.usage.cache_creation.input_tokens"
_CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "claude-sonnet-5"}


class Sample(NamedTuple):
    """One exported call. total: its prompt, tokens of the cache included; rule: what decides."""

    scope: str
    name: str
    attributes: dict[str, Any]
    total: int | None
    rule: str


def _gen_ai(prompt: int, **more: Any) -> dict[str, Any]:
    return {
        **_CHAT,
        "gen_ai.usage.input_tokens": prompt,
        "gen_ai.usage.output_tokens": 50,
        **more,
    }


def _openinference(prompt: int, **more: Any) -> dict[str, Any]:
    return {
        "openinference.span.kind": "LLM",
        "llm.model_name": "claude-sonnet-5",
        "llm.token_count.prompt": prompt,
        "llm.token_count.completion": 50,
        "llm.token_count.prompt_details.cache_read": 800,
        **more,
    }


SPANS: dict[str, Sample] = {
    "semconv, newest": Sample(
        "my.own",
        "chat",
        _gen_ai(1000, **{SEMCONV_READ: 800, "gen_ai.usage.cache_write.input_tokens": 100}),
        1000,
        "gen_ai_1_40",
    ),
    "semconv 1.40, against its own rule by the total": Sample(
        "my.own",
        "chat",
        _gen_ai(800, **{SEMCONV_READ: 200, "gen_ai.usage.total_tokens": 1050}),
        1000,
        "gen_ai_1_40:total_has_cache",
    ),
    "semconv 1.40, against its own rule": Sample(
        "my.own",
        "chat",
        _gen_ai(100, **{SEMCONV_READ: 800, SEMCONV_WRITE: 100}),
        1000,
        "gen_ai_1_40:cache_exceeds_input",
    ),
    "semconv before 1.40, cache inside": Sample(
        "my.own",
        "chat",
        _gen_ai(1000, **{"gen_ai.usage.cache_read_input_tokens": 800}),
        1000,
        "gen_ai:taken_as_inside",
    ),
    "semconv before 1.40, cache beside by the total": Sample(
        "my.own",
        "chat",
        _gen_ai(
            1000,
            **{"gen_ai.usage.cache_read_input_tokens": 800, "gen_ai.usage.total_tokens": 1850},
        ),
        1800,
        "gen_ai:total_has_cache",
    ),
    "semconv 1.26": Sample(
        "my.own",
        "chat gpt-4o",
        {
            "gen_ai.system": "openai",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.usage.prompt_tokens": 1000,
            "gen_ai.usage.completion_tokens": 50,
        },
        1000,
        "gen_ai",
    ),
    "openinference": Sample(
        "openinference.instrumentation.anthropic",
        "messages",
        _openinference(1000),
        1000,
        "openinference",
    ),
    "openinference of the agent sdk": Sample(
        "openinference.instrumentation.claude_agent_sdk",
        "query",
        _openinference(1000),
        1800,
        "openinference_claude_agent_sdk",
    ),
    "openinference of langchain": Sample(
        "openinference.instrumentation.langchain",
        "ChatOpenAI",
        _openinference(1000, **{"llm.token_count.total": 1050}),
        1000,
        "openinference_langchain:taken_as_inside",
    ),
    "openinference of langchain over bedrock": Sample(
        "openinference.instrumentation.langchain",
        "ChatBedrock",
        _openinference(200, **{"llm.token_count.total": 1050}),
        1000,
        "openinference_langchain:cache_exceeds_input",
    ),
    "openllmetry": Sample(
        "opentelemetry.instrumentation.anthropic",
        "anthropic.chat",
        {
            "llm.request.type": "chat",
            "gen_ai.system": "Anthropic",
            "gen_ai.request.model": "claude-sonnet-5",
            "gen_ai.usage.input_tokens": 1000,
            "gen_ai.usage.output_tokens": 50,
            "gen_ai.usage.cache_read_input_tokens": 800,
        },
        1000,
        "openllmetry",
    ),
    "pydantic-ai": Sample(
        "pydantic-ai",
        "chat claude-sonnet-5",
        _gen_ai(1000, **{"gen_ai.usage.details.cache_read_tokens": 800}),
        1000,
        "pydantic_ai",
    ),
    "langfuse": Sample(
        "langfuse-sdk",
        "generation",
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.model.name": "claude-sonnet-5",
            "langfuse.observation.usage_details": json.dumps(
                {
                    "input": 100,
                    "cache_read_input_tokens": 800,
                    "input_cache_creation": 100,
                    "output": 50,
                    "total": 1050,
                }
            ),
        },
        1000,
        "langfuse",
    ),
    "langfuse, openai's own counts": Sample(
        "langfuse-sdk",
        "generation",
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.usage_details": json.dumps(
                {
                    "prompt_tokens": 1000,
                    "completion_tokens": 50,
                    "total_tokens": 1050,
                    "prompt_tokens_details": {"cached_tokens": 800},
                }
            ),
        },
        1000,
        "langfuse_raw:taken_as_inside",
    ),
    "langfuse, gemini's own counts": Sample(
        "langfuse-sdk",
        "generation",
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.usage_details": json.dumps(
                {
                    "prompt_token_count": 1000,
                    "candidates_token_count": 50,
                    "cached_content_token_count": 800,
                    "total_token_count": 1050,
                }
            ),
        },
        1000,
        "langfuse_raw:taken_as_inside",
    ),
    "ai sdk 5, openai": Sample(
        "ai",
        "ai.streamText.doStream",
        {
            "ai.model.id": "gpt-4o",
            "ai.model.provider": "openai.chat",
            "ai.usage.inputTokens": 1000,
            "ai.usage.outputTokens": 50,
            "ai.usage.cachedInputTokens": 800,
        },
        1000,
        "ai_sdk_5",
    ),
    "ai sdk 4, anthropic": Sample(
        "ai",
        "ai.generateText.doGenerate",
        {
            "ai.model.id": "claude-sonnet-5",
            "ai.model.provider": "anthropic.messages",
            "ai.usage.promptTokens": 100,
            "ai.usage.completionTokens": 50,
            "ai.response.providerMetadata": json.dumps(
                {
                    "anthropic": {
                        "usage": {
                            "cache_read_input_tokens": 800,
                            "cache_creation_input_tokens": 100,
                        }
                    }
                }
            ),
        },
        1000,
        "ai_sdk_5_beside",
    ),
    "ai sdk 5, bedrock": Sample(
        "ai",
        "ai.generateObject.doGenerate",
        {
            "ai.model.id": "claude-sonnet-5",
            "ai.model.provider": "amazon-bedrock",
            "ai.usage.inputTokens": 100,
            "ai.usage.cachedInputTokens": 800,
            "ai.response.providerMetadata": json.dumps(
                {"bedrock": {"usage": {"cacheWriteInputTokens": 100}}}
            ),
        },
        1000,
        "ai_sdk_5_beside",
    ),
    "ai sdk 6, anthropic": Sample(
        "ai",
        "ai.streamText.doStream",
        {
            "ai.model.id": "claude-sonnet-5",
            "ai.model.provider": "anthropic.messages",
            "ai.usage.inputTokens": 1000,
            "ai.usage.inputTokenDetails.noCacheTokens": 100,
            "ai.usage.inputTokenDetails.cacheReadTokens": 800,
            "ai.usage.inputTokenDetails.cacheWriteTokens": 100,
        },
        1000,
        "ai_sdk_6",
    ),
    "langsmith": Sample(
        "langsmith",
        "ChatAnthropic",
        _gen_ai(1000, **{"langsmith.span.kind": "LLM", "gen_ai.usage.details.cache_read": 800}),
        1000,
        "langsmith",
    ),
    "langfuse, a whole prompt with the cache beside its details": Sample(
        "langfuse-sdk",
        "llm",
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.usage_details": json.dumps(
                {
                    "prompt_tokens": 1000,
                    "completion_tokens": 50,
                    "total_tokens": 1050,
                    "cache_read_input_tokens": 800,
                }
            ),
        },
        1000,
        "langfuse_raw:taken_as_inside",
    ),
    "mlflow": Sample(
        "mlflow",
        "ChatModel",
        {
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.llm.model": '"gpt-4o"',
            "mlflow.chat.tokenUsage": json.dumps(
                {"input_tokens": 1000, "output_tokens": 50, "total_tokens": 1050}
            ),
        },
        1000,
        "mlflow",
    ),
    "mlflow, anthropic's messages": Sample(
        "mlflow",
        "Messages.create",
        {
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.message.format": '"anthropic"',
            "mlflow.chat.tokenUsage": json.dumps(
                {
                    "input_tokens": 900,
                    "output_tokens": 50,
                    "total_tokens": 950,
                    "cache_read_input_tokens": 100,
                }
            ),
        },
        1000,
        "mlflow",
    ),
    "mlflow, anthropic's own counts": Sample(
        "mlflow",
        "messages",
        {
            "mlflow.spanType": "LLM",
            "gen_ai.system": "anthropic",
            "mlflow.chat.tokenUsage": {
                "input_tokens": 1000,
                "output_tokens": 50,
                "cache_read_input_tokens": 800,
            },
        },
        1800,
        "mlflow",
    ),
    "claude code": Sample(
        "com.anthropic.claude_code.tracing",
        "claude_code.llm_request",
        {
            "span.type": "llm_request",
            "gen_ai.request.model": "claude-opus-4-8[1m]",
            "input_tokens": "100",
            "output_tokens": 50,
            "cache_read_tokens": 800,
            "cache_creation_tokens": "100",
        },
        1000,
        "claude_code",
    ),
    "codex": Sample(
        "codex_core",
        "handle_responses",
        {
            "gen_ai.usage.input_tokens": 1000,
            "gen_ai.usage.output_tokens": 50,
            SEMCONV_READ: 800,
            "codex.usage.reasoning_output_tokens": 20,
        },
        1000,
        "codex",
    ),
    "google's agents": Sample(
        "gcp.vertex.agent",
        "call_llm",
        {
            "gen_ai.operation.name": "generate_content",
            "gen_ai.request.model": "gemini-2.5-pro",
            "gen_ai.usage.input_tokens": 1000,
        },
        1000,
        "gcp_vertex_agent",
    ),
    "no counts": Sample("my.own", "chat", dict(_CHAT), None, ""),
}
LOGS: dict[str, Sample] = {
    "claude code": Sample(
        "com.anthropic.claude_code.events",
        "",
        {
            "event.name": "api_request",
            "session.id": "s-1",
            "model": "claude-opus-4-8",
            "input_tokens": "100",
            "output_tokens": "50",
            "cache_read_tokens": "800",
            "cache_creation_tokens": "100",
            "request_id": "req_1",
            "query_source": "repl_main_thread",
        },
        1000,
        "claude_code",
    ),
    "codex": Sample(
        "codex_otel.log_only",
        "otel/src/events.rs:12",
        {
            "event.name": "codex.sse_event",
            "event.kind": "response.completed",
            "event.timestamp": "2026-11-22T10:00:00.123Z",
            "conversation.id": "t-1",
            "model": "gpt-5.4",
            "input_token_count": "1000",
            "output_token_count": "50",
            "cached_token_count": 800,
            "reasoning_token_count": "20",
            "tool_token_count": "1050",
        },
        1000,
        "codex",
    ),
    "qwen code": Sample(
        "qwen-code",
        "",
        {
            "event.name": "qwen-code.api_response",
            "session.id": "g-1",
            "model": "qwen3-coder-plus",
            "input_token_count": 1000,
            "output_token_count": 50,
            "cached_content_token_count": 800,
            "thoughts_token_count": 20,
            "total_token_count": 1050,
        },
        1000,
        "qwen_code",
    ),
    "gemini cli": Sample(
        "gemini-cli",
        "",
        {
            "event.name": "gemini_cli.api_response",
            "session.id": "g-1",
            "model": "gemini-2.5-pro",
            "input_token_count": 1000,
            "output_token_count": 50,
            "cached_content_token_count": 800,
            "thoughts_token_count": 20,
            "tool_token_count": 7,
            "status_code": 200,
            "finish_reasons": ["", "STOP"],
        },
        1000,
        "gemini_cli",
    ),
}
