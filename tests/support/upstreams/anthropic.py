"""Anthropic's API as it is on the wire: messages, count_tokens, models.

Source: platform.claude.com/docs/en/api (messages, streaming, errors, messages-count-tokens) and
…/build-with-claude/message-threads: a thread is kept under the id of its newest reply.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

from tests.support.upstreams.checking import LISTED, Invalid, behaviours, known, need
from tests.support.upstreams.faults import Stage, Trouble
from tests.support.upstreams.http import Exchange
from tests.support.upstreams.plays import Asked, End, Play, Tokens

PREFIX = "claude"
COUNTED_TOKENS = 2095
_STOP = {
    End.STOP: "end_turn",
    End.LENGTH: "max_tokens",
    End.TOOLS: "tool_use",
    End.REFUSAL: "refusal",
    End.FILTER: "refusal",
    End.NOT_SAID: None,
}
_MEMBERS = """
    model messages system max_tokens stream tools tool_choice temperature top_p top_k
    stop_sequences metadata thinking service_tier container context_management mcp_servers
    output_config output_format cache_control inference_geo thread diagnostics
""".split()
_BLOCKS = {"text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking", "document"}


class Anthropic:
    """The wire format; see `faults.Vendor`."""

    stream_type = "text/event-stream; charset=utf-8"

    def whole(self, asked: Asked, play: Play) -> bytes:
        body = {
            **_message(asked),
            "content": _blocks(play),
            "stop_reason": _STOP[play.end],
            "stop_sequence": None,
            **_usage(play, play.tokens.completion if play.tokens else 0),
        }
        return json.dumps(body, ensure_ascii=False).encode()

    def frames(self, asked: Asked, play: Play) -> list[bytes]:
        start = {
            **_message(asked),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            **_usage(play, 1),
        }
        frames: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
        for index, block in enumerate(_blocks(play)):
            opening, deltas = _in_deltas(block, play)
            frames.append({"type": "content_block_start", "index": index, "content_block": opening})
            if index == 0:
                frames.append({"type": "ping"})
            frames += [
                {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
            ]
            frames.append({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": _STOP[play.end], "stop_sequence": None}
        frames.append({"type": "message_delta", "delta": delta, **_final_usage(play)})
        frames.append({"type": "message_stop"})
        return [_sse(frame) for frame in frames]

    def trouble(self, kind: str) -> Trouble:
        status, name, message = _TROUBLE.get(kind, _TROUBLE["server"])
        return Trouble(status=status, body=json.dumps(_error(name, message)).encode())

    def trouble_in_stream(self) -> bytes:
        return _sse(_error("overloaded_error", "Overloaded"))


class AnthropicServer:
    """Routes of api.anthropic.com."""

    def __init__(self, *, outsider_url: str) -> None:
        self._vendor = Anthropic()
        self._stage = Stage(self._vendor, outsider_url=outsider_url)
        # By the reply from which a thread goes on: the tools that it was made with.
        self._threads: dict[str, tuple[str, ...]] = {}

    async def __call__(self, exchange: Exchange) -> None:
        seen = exchange.seen
        if not (seen.header("x-api-key") or seen.header("authorization")):
            trouble = self._vendor.trouble("key")
            await exchange.reply(trouble.status, trouble.body)
            return
        try:
            need(seen.header("anthropic-version"), "anthropic-version", "header is required")
            await self._route(exchange, f"{seen.method} {seen.path}")
        except Invalid as error:
            body = _error("invalid_request_error", f"{error.where}: {error.message}")
            await exchange.reply(400, json.dumps(body).encode())

    async def _route(self, exchange: Exchange, route: str) -> None:
        match route:
            case "POST /v1/messages":
                await self._reply(exchange)
            case "POST /v1/messages/count_tokens":
                read({"max_tokens": 1, **exchange.seen.json})
                need("max_tokens" not in exchange.seen.json, "max_tokens", "Extra inputs")
                await exchange.reply(200, json.dumps({"input_tokens": COUNTED_TOKENS}).encode())
            case "GET /v1/models":
                await exchange.reply(200, _models())
            case _:
                trouble = self._vendor.trouble("model")
                await exchange.reply(trouble.status, trouble.body)

    async def _reply(self, exchange: Exchange) -> None:
        body = exchange.seen.json
        asked, thread = read(body), body.get("thread")
        reply_id = f"msg_{uuid4().hex}"
        if thread is not None or body.get("diagnostics"):
            asked = replace(asked, reply_id=reply_id)
        if thread is not None:
            if thread["type"] == "continue":
                tools = self._threads.get(thread["previous_message_id"])
                if tools is None:
                    gone = _error("not_found_error", "thread not found or expired")
                    gone["error"]["details"] = {"error_code": "thread_not_found"}
                    await exchange.reply(404, json.dumps(gone).encode())
                    return
                asked = replace(asked, tools=tools)
            self._threads[reply_id] = asked.tools
        await self._stage.perform(exchange, asked)


def read(body: dict[str, Any]) -> Asked:
    """Read a request as Anthropic does. Raises Invalid."""
    goes_on = (body.get("thread") or {}).get("type") == "continue"
    known(body, _MEMBERS, "")
    need(isinstance(body.get("model"), str), "model", "Field required")
    need(isinstance(body.get("max_tokens"), int), "max_tokens", "Field required")
    messages = body.get("messages")
    need(isinstance(messages, list) and messages, "messages", "at least one message is required")
    assert messages is not None
    _check_messages(messages, goes_on=goes_on)
    need(not goes_on or not {"system", "tools"} & body.keys(), "thread", "keeps system and tools")
    tools = body.get("tools") or []
    for at, tool in enumerate(tools):
        if "input_schema" in tool:
            kind = tool["input_schema"].get("type")
            need(kind == "object", f"tools.{at}.custom.input_schema.type", "Field required")
    last = messages[-1]["content"]
    return Asked(
        model=body["model"],
        stream=bool(body.get("stream")),
        tools=tuple(tool["name"] for tool in tools),
        has_tool_result=isinstance(last, list)
        and any(block["type"] == "tool_result" for block in last),
        schema=_schema(body),
        images=sum(
            block["type"] == "image"
            for message in messages
            if isinstance(message["content"], list)
            for block in message["content"]
        ),
    )


def _schema(body: dict[str, Any]) -> dict[str, Any] | None:
    wanted = (body.get("output_config") or {}).get("format") or body.get("output_format")
    if wanted is None:
        return None
    need(
        wanted["type"] == "json_schema", "output_config.format.type", "Input should be json_schema"
    )
    schema: dict[str, Any] = wanted["schema"]
    return schema


def _check_messages(messages: list[dict[str, Any]], *, goes_on: bool) -> None:
    need(messages[0].get("role") == "user", "messages", "first message must use the user role")
    asked_for: set[str] = set()
    for at, message in enumerate(messages):
        where = f"messages.{at}"
        known(message, ("role", "content"), f"{where}.")
        # Not the first: Claude Code 2.1.330 sends what its user has set as a system message.
        roles = {"user", "assistant", "system"} if at else {"user"}
        need(message.get("role") in roles, f"{where}.role", "Unexpected role")
        follows = messages[at - 1].get("role") if at else None
        is_placed = message.get("role") != "system" or follows == "user"
        need(is_placed, f"{where}.role", "a system message follows a user's turn alone")
        content = message.get("content")
        need(content, f"{where}.content", "must have non-empty content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        assert blocks is not None
        _check_blocks(blocks, where)
        answered = {b["tool_use_id"] for b in blocks if b["type"] == "tool_result"}
        if goes_on and not at:
            asked_for = answered  # by what the thread holds
        need(answered <= asked_for, where, f"unexpected `tool_use_id` found: {answered}")
        need(
            asked_for <= answered,
            where,
            "`tool_use` ids were found without `tool_result` blocks immediately after",
        )
        asked_for = {block["id"] for block in blocks if block["type"] == "tool_use"}


def _check_blocks(blocks: list[dict[str, Any]], where: str) -> None:
    for block in blocks:
        kind = block.get("type")
        need(kind in _BLOCKS, where, f"Input tag {kind!r} does not match any of the expected tags")
        if kind == "text":
            need(block.get("text"), where, "text content blocks must be non-empty")
        if kind == "tool_use":
            need(isinstance(block.get("input"), dict), f"{where}.input", "should be a dictionary")
        if kind == "image":
            source = block["source"]
            need(source["type"] in {"base64", "url"}, f"{where}.source", "unknown type")
            need(
                source["type"] == "url" or source["media_type"].startswith("image/"),
                f"{where}.source.media_type",
                "Input should be an image type",
            )


def _message(asked: Asked) -> dict[str, Any]:
    return {
        "id": asked.reply_id or "msg_01SimAnthropic",
        "type": "message",
        "role": "assistant",
        "model": f"{asked.model}-20260101",
    }


def _blocks(play: Play) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if play.thoughts:
        blocks.append({"type": "thinking", "thinking": play.thinking, "signature": "U2ltU2lnbmVk"})
    if play.text:
        blocks.append({"type": "text", "text": play.text})
    for use in play.uses:
        tool = {"id": use.id.replace("call_", "toolu_"), "name": use.name}
        blocks.append({"type": "tool_use", **tool, "input": dict(use.arguments)})
    return blocks


def _in_deltas(block: dict[str, Any], play: Play) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """How a block opens, and the deltas that fill it."""
    if block["type"] == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in play.pieces]
        return {"type": "text", "text": ""}, deltas
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": thought} for thought in play.thoughts]
        seal = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, seal]
    text = json.dumps(block["input"], ensure_ascii=False)
    pieces = ["", *(text[at : at + 5] for at in range(0, len(text), 5))]
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return {**block, "input": {}}, deltas


def _usage(play: Play, output: int) -> dict[str, Any]:
    if play.usage_form == "missing":
        return {}
    if play.usage_form == "null" or play.tokens is None:
        return {"usage": None}
    return {"usage": usage_of(play.tokens, output)}


def usage_of(tokens: Tokens, output: int) -> dict[str, Any]:
    """Usage as Anthropic counts: three separate counters of the prompt."""
    return {
        "input_tokens": tokens.prompt - tokens.cached - tokens.written,
        "cache_creation_input_tokens": tokens.written,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.written,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output,
        "service_tier": "standard",
    }


def _final_usage(play: Play) -> dict[str, Any]:
    if play.usage_form == "missing":
        return {}
    if play.usage_form == "null" or play.tokens is None:
        return {"usage": None}
    return {"usage": {"output_tokens": play.tokens.completion}}


def _models() -> bytes:
    data = [
        {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
        for name in behaviours(PREFIX, LISTED)
    ]
    page = {"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
    return json.dumps(page).encode()


def _sse(frame: dict[str, Any]) -> bytes:
    text = json.dumps(frame, ensure_ascii=False)
    return f"event: {frame['type']}\ndata: {text}\n\n".encode()


def _error(name: str, message: str) -> dict[str, Any]:
    error = {"type": name, "message": message}
    return {"type": "error", "error": error, "request_id": "req_011Simulated"}


_TROUBLE: dict[str, tuple[int, str, str]] = {
    "rate": (
        429,
        "rate_limit_error",
        (
            "This request would exceed your organization's rate limit of 40,000 input tokens per "
            "minute."
        ),
    ),
    "server": (500, "api_error", "Internal server error"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "key": (401, "authentication_error", "invalid x-api-key"),
    "model": (404, "not_found_error", "model: claude-no-such-model"),
    "overflow": (
        400,
        "invalid_request_error",
        "prompt is too long: 212345 tokens > 200000 maximum",
    ),
}
