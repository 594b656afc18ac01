"""OpenAI's API as it is on the wire: chat completions, embeddings, models.

Source: platform.openai.com/docs/api-reference (chat/object, chat-streaming, embeddings, models)
and the error guide. Reasoning comes as `reasoning_content`, as DeepSeek and vLLM send it.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

from tests.support.upstreams.checking import LISTED, Invalid, behaviours, known, need
from tests.support.upstreams.faults import Stage, Trouble
from tests.support.upstreams.http import Exchange
from tests.support.upstreams.plays import Asked, End, Play, Tokens, Use

PREFIX = "gpt"
VECTOR = (0.5, -0.25, 0.125, 1.0)
CREATED = 1_767_225_600
_FINISH = {
    End.STOP: "stop",
    End.LENGTH: "length",
    End.TOOLS: "tool_calls",
    End.REFUSAL: "stop",
    End.FILTER: "content_filter",
    End.NOT_SAID: None,
}
_MEMBERS = """
    model messages stream stream_options tools tool_choice parallel_tool_calls response_format
    max_tokens max_completion_tokens temperature top_p n stop seed presence_penalty
    frequency_penalty logit_bias logprobs top_logprobs user metadata store reasoning_effort
    service_tier prediction modalities prompt_cache_key safety_identifier verbosity
""".split()
_ROLES = {"system", "developer", "user", "assistant", "tool"}


class OpenAI:
    """The wire format; see `faults.Vendor`."""

    stream_type = "text/event-stream; charset=utf-8"

    def whole(self, asked: Asked, play: Play) -> bytes:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": play.text or None,
            "refusal": play.refusal,
            "annotations": [],
        }
        if play.thoughts:
            message["reasoning_content"] = play.thinking
        if play.uses:
            message["tool_calls"] = [_tool_call(use) for use in play.uses]
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _FINISH[play.end],
        }
        body = {**_envelope(asked, "chat.completion"), "choices": [choice]}
        # Indented, as OpenAI's own bodies are: a reader that writes them anew shows.
        return json.dumps({**body, **_usage(play)}, indent=2, ensure_ascii=False).encode() + b"\n"

    def frames(self, asked: Asked, play: Play) -> list[bytes]:
        deltas = _deltas(play)
        reasons = [None] * len(deltas) + [_FINISH[play.end]]
        with_null = {"usage": None} if asked.wants_usage else {}
        frames = [
            {
                **_envelope(asked, "chat.completion.chunk"),
                "choices": [
                    {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
                ],
                **with_null,
            }
            for delta, reason in zip([*deltas, {}], reasons, strict=True)
        ]
        if asked.wants_usage and (usage := _usage(play)):
            frames.append({**_envelope(asked, "chat.completion.chunk"), "choices": [], **usage})
        return [*(_sse(frame) for frame in frames), b"data: [DONE]\n\n"]

    def trouble(self, kind: str) -> Trouble:
        status, error = _TROUBLE.get(kind, _TROUBLE["server"])
        return Trouble(status=status, body=json.dumps({"error": error}, indent=4).encode())

    def trouble_in_stream(self) -> bytes:
        return _sse({"error": _TROUBLE["server"][1]})


class OpenAIServer:
    """Routes of api.openai.com."""

    def __init__(self, *, outsider_url: str) -> None:
        self._vendor = OpenAI()
        self._stage = Stage(self._vendor, outsider_url=outsider_url)

    async def __call__(self, exchange: Exchange) -> None:
        seen = exchange.seen
        if not (seen.header("authorization") or "").startswith("Bearer "):
            await _send(exchange, self._vendor.trouble("key"))
            return
        try:
            await self._route(exchange, f"{seen.method} {seen.path}")
        except Invalid as error:
            refusal = {
                "message": str(error),
                "type": "invalid_request_error",
                "param": error.where,
                "code": None,
            }
            await exchange.reply(400, json.dumps({"error": refusal}).encode())

    async def _route(self, exchange: Exchange, route: str) -> None:
        match route:
            case "POST /v1/chat/completions":
                await self._stage.perform(exchange, read(exchange.seen.json))
            case "POST /v1/embeddings":
                await exchange.reply(200, _embeddings(exchange.seen.json))
            case "GET /v1/models":
                await exchange.reply(200, _models())
            case _ if exchange.seen.path.startswith("/v1/responses"):
                # As most compatible hosts, it has the chat API only.
                await _send(exchange, self._vendor.trouble("url"))
            case _:
                await _send(exchange, self._vendor.trouble("model"))


def read(body: dict[str, Any]) -> Asked:
    """Read a request as OpenAI does. Raises Invalid."""
    known(body, _MEMBERS, "")
    need(isinstance(body.get("model"), str), "model", "you must provide a model parameter")
    messages = body.get("messages")
    need(isinstance(messages, list) and messages, "messages", "expected a non-empty array")
    assert messages is not None
    _check_messages(messages)
    options = body.get("stream_options")
    need(options is None or body.get("stream"), "stream_options", "only with stream")
    tools = body.get("tools")
    need(tools is None or tools, "tools", "[] is too short")
    for at, tool in enumerate(tools or []):
        known(tool, ("type", "function"), f"tools[{at}].")
        known(
            tool["function"], "name description parameters strict".split(), f"tools[{at}].function."
        )
    need(tools or "tool_choice" not in body, "tool_choice", "only allowed when tools are specified")
    last = messages[-1]
    return Asked(
        model=body["model"],
        stream=bool(body.get("stream")),
        wants_usage=bool((options or {}).get("include_usage")),
        tools=tuple(tool["function"]["name"] for tool in tools or []),
        has_tool_result=last["role"] == "tool",
        schema=_schema(body.get("response_format")),
        text=str(last.get("content") or ""),
        images=sum(
            part["type"] == "image_url"
            for message in messages
            if isinstance(message.get("content"), list)
            for part in message["content"]
        ),
    )


def _check_messages(messages: list[dict[str, Any]]) -> None:
    open_calls: set[str] = set()
    for at, message in enumerate(messages):
        where = f"messages.[{at}]."
        role = message.get("role")
        need(role in _ROLES, f"{where}role", f"invalid value {role!r}")
        known(
            message,
            "role content name tool_calls tool_call_id refusal reasoning_content audio annotations "
            "function_call".split(),
            where,
        )
        if role == "tool":
            call_id = message.get("tool_call_id")
            need(call_id in open_calls, f"{where}role", "must follow a message with 'tool_calls'")
            open_calls.discard(str(call_id))
        else:
            need(not open_calls, where, f"tool_call_ids did not have response: {open_calls}")
        calls = message.get("tool_calls") or []
        need(calls or message.get("content") is not None, f"{where}content", "expected a string")
        for call in calls:
            json.loads(call["function"]["arguments"])
            open_calls.add(call["id"])
        _check_content(message.get("content"), where)


def _check_content(content: object, where: str) -> None:
    if not isinstance(content, list):
        need(content is None or isinstance(content, str), f"{where}content", "expected a string")
        return
    for part in content:
        kind = part.get("type")
        need(
            kind in {"text", "image_url", "refusal", "input_audio", "file"},
            f"{where}content",
            f"invalid type {kind!r}",
        )
        if kind == "image_url":
            url = part["image_url"]["url"]
            need(url.startswith(("data:image/", "https://")), f"{where}image_url", "invalid url")


def _schema(response_format: dict[str, Any] | None) -> dict[str, Any] | None:
    if response_format is None or response_format["type"] == "text":
        return None
    if response_format["type"] == "json_object":
        return {}
    need(response_format["type"] == "json_schema", "response_format.type", "invalid value")
    need(response_format["json_schema"].get("name"), "response_format.json_schema.name", "missing")
    schema: dict[str, Any] = response_format["json_schema"].get("schema") or {}
    return schema


def _envelope(asked: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-Sim0penAi",
        "object": kind,
        "created": CREATED,
        "model": f"{asked.model}-2026-01-01",
        "service_tier": "default",
        "system_fingerprint": "fp_simulated",
    }


def _deltas(play: Play) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
    deltas += [{"reasoning_content": thought} for thought in play.thoughts]
    deltas += [{"content": piece} for piece in play.pieces]
    if play.refusal is not None:
        deltas.append({"refusal": play.refusal})
    for index, use in enumerate(play.uses):
        call = _tool_call(use)
        text = call["function"]["arguments"]
        call["function"]["arguments"] = ""
        deltas.append({"tool_calls": [{"index": index, **call}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": text[at : at + 5]}}]}
            for at in range(0, len(text), 5)
        ]
    return deltas


def _tool_call(use: Use) -> dict[str, Any]:
    arguments = json.dumps(use.arguments, ensure_ascii=False)
    return {
        "id": use.id,
        "type": "function",
        "function": {"name": use.name, "arguments": arguments},
    }


def _usage(play: Play) -> dict[str, Any]:
    if play.usage_form == "missing":
        return {}
    if play.usage_form == "null" or play.tokens is None:
        return {"usage": None}
    return {"usage": usage_of(play.tokens)}


def usage_of(tokens: Tokens) -> dict[str, Any]:
    """Usage as OpenAI counts: cached tokens are a part of the prompt."""
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": tokens.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _embeddings(body: dict[str, Any]) -> bytes:
    known(body, "model input dimensions encoding_format user".split(), "")
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    vector: Any = list(VECTOR)
    if body.get("encoding_format") == "base64":
        vector = base64.b64encode(struct.pack("<4f", *VECTOR)).decode()
    data = [{"object": "embedding", "index": at, "embedding": vector} for at, _ in enumerate(texts)]
    usage = {"prompt_tokens": 8, "total_tokens": 8}
    return json.dumps(
        {"object": "list", "data": data, "model": body["model"], "usage": usage}
    ).encode()


def _models() -> bytes:
    data = [
        {"id": name, "object": "model", "created": CREATED, "owned_by": "system"}
        for name in [*behaviours(PREFIX, LISTED), "text-embedding-sim"]
    ]
    return json.dumps({"object": "list", "data": data}).encode()


def _sse(frame: dict[str, Any]) -> bytes:
    text = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
    return b"data: " + text.encode() + b"\n\n"


async def _send(exchange: Exchange, trouble: Trouble) -> None:
    await exchange.reply(trouble.status, trouble.body)


def _error(
    message: str, kind: str, code: str | int | None = None, param: str | None = None
) -> dict[str, Any]:
    return {"message": message, "type": kind, "param": param, "code": code}


_TROUBLE: dict[str, tuple[int, dict[str, Any]]] = {
    "rate": (
        429,
        _error(
            "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit "
            "30000, Used 29000, Requested 2000. Please try again in 2s.",
            "tokens",
            "rate_limit_exceeded",
        ),
    ),
    "server": (
        500,
        _error("The server had an error while processing your request. Sorry!", "server_error"),
    ),
    "overloaded": (
        503,
        _error("The engine is currently overloaded, please try again later", "server_error"),
    ),
    "key": (
        401,
        _error(
            "Incorrect API key provided: sk-upst***cret. You can find your API key at "
            "https://platform.openai.com/account/api-keys.",
            "invalid_request_error",
            "invalid_api_key",
        ),
    ),
    "model": (
        404,
        _error(
            "The model `gpt-no-such-model` does not exist or you do not have access to it.",
            "invalid_request_error",
            "model_not_found",
        ),
    ),
    "url": (
        404,
        _error(
            "Unknown request URL: POST /v1/responses. Please check the URL for typos.",
            "invalid_request_error",
            "unknown_url",
        ),
    ),
    "overflow": (
        400,
        _error(
            "This model's maximum context length is 128000 tokens. However, your messages resulted "
            "in 130021 tokens. Please reduce the length of the messages.",
            "invalid_request_error",
            "context_length_exceeded",
            "messages",
        ),
    ),
    # OpenRouter's status is its code, and there is no type.
    "overflow-openrouter": (
        400,
        {
            "message": "This endpoint's maximum context length is 131072 tokens. However, you "
            "requested about 140000 tokens (139000 of text input, 1000 in the output). Please "
            'reduce the length of either one, or use the "middle-out" transform to compress '
            "your prompt automatically.",
            "code": 400,
        },
    ),
    "overflow-groq": (
        413,
        _error(
            "Please reduce the length of the messages or completion.",
            "invalid_request_error",
            "context_length_exceeded",
            "messages",
        ),
    ),
    "overflow-vllm": (
        400,
        _error(
            "This model's maximum context length is 8192 tokens. However, you requested 9000 "
            "tokens (8000 in the messages, 1000 in the completion). Please reduce the length of "
            "the messages or completion.",
            "BadRequestError",
            400,
        ),
    ),
    "overflow-llamacpp": (
        400,
        {
            "code": 400,
            "message": "request (9021 tokens) exceeds the available context size (8192 tokens), "
            "try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 9021,
            "n_ctx": 8192,
        },
    ),
    "overflow-mistral": (
        400,
        _error(
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
            "maximum context length",
            "invalid_request_error",
            "3051",
        ),
    ),
}
