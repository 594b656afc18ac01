"""OpenAI's Responses API as it is on the wire, by a host that has no other.

Source: platform.openai.com/docs/api-reference/responses and responses-streaming. An event that
nobody knows comes along, as they do whenever the API grows, and with a cached prompt such an item.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from tests.support.upstreams.checking import Invalid, need
from tests.support.upstreams.faults import Stage, Trouble
from tests.support.upstreams.http import Exchange
from tests.support.upstreams.openai import CREATED, OpenAI
from tests.support.upstreams.plays import Asked, End, Play

PREFIX = "answer"
# By this name of the host it has no address that compacts.
PLAIN_HOST = "localhost"
RESPONSE_ID = "resp_Sim0penAi"
# What is made in the background: queued at first, and over whenever it is asked for.
LATER = "resp_later_"
_LATER_USAGE = {"input_tokens": 1200, "output_tokens": 34, "total_tokens": 1234}
_INCOMPLETE = {End.LENGTH: "max_output_tokens", End.FILTER: "content_filter"}
_OWN_ITEM = {"id": "sp_1", "type": "sparkle", "glow": 1.50}


class Responses:
    """The wire format; see `faults.Vendor`."""

    stream_type = "text/event-stream; charset=utf-8"

    def whole(self, asked: Asked, play: Play) -> bytes:
        body = _response(asked, play, output=_items(play), is_done=True)
        return json.dumps(body, indent=2, ensure_ascii=False).encode() + b"\n"

    def frames(self, asked: Asked, play: Play) -> list[bytes]:
        begun = _response(asked, play, output=[], is_done=False)
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
            {"type": "response.sparkle", "glow": 1.50},
        ]
        items = _items(play)
        for index, item in enumerate(items):
            events += [{**event, "output_index": index} for event in _events_of_item(item, play)]
        if play.end is not End.NOT_SAID:
            done = _response(asked, play, output=items, is_done=True)
            events.append({"type": f"response.{done['status']}", "response": done})
        return [_sse(event, number) for number, event in enumerate(events)]

    def trouble(self, kind: str) -> Trouble:
        return OpenAI().trouble(kind)

    def trouble_in_stream(self) -> bytes:
        error = {"code": "server_error", "message": "The server had an error. Sorry!"}
        response = {"id": RESPONSE_ID, "status": "failed", "error": error, "output": []}
        return _sse({"type": "response.failed", "response": {**response, "usage": None}}, 99)


class ResponsesServer:
    """Routes of a host with this API alone."""

    def __init__(self, *, outsider_url: str) -> None:
        self._stage = Stage(Responses(), outsider_url=outsider_url)

    async def __call__(self, exchange: Exchange) -> None:
        seen = exchange.seen
        route = f"{seen.method} {seen.path}"
        if route != "POST /v1/responses":
            await _beside(exchange, route)
            return
        if seen.json.get("background") and not seen.json.get("stream"):
            made = f"{LATER}{seen.json['model'].partition('.')[2]}"
            queued = {"id": made, "object": "response", "status": "queued", "output": []}
            await exchange.reply(200, json.dumps({**queued, "usage": None}).encode())
            return
        try:
            asked = _read(seen.json)
        except Invalid as error:
            told = {"message": str(error), "type": "invalid_request_error", "param": error.where}
            await exchange.reply(400, json.dumps({"error": told}).encode())
        else:
            await self._stage.perform(exchange, asked)


async def _beside(exchange: Exchange, route: str) -> None:
    """All but the creation of a response; whatever id is asked for is there."""
    verb, _, path = route.partition(" /v1/responses/")
    reply_id, _, what = path.partition("/")
    told: dict[str, Any] = {"id": reply_id, "object": "response", "status": "completed"}
    match verb, what or path:
        case "POST", "input_tokens":
            told = {"object": "response.input_tokens", "input_tokens": 11}
        case "POST", "compact" if not _is_plain(exchange):
            items = exchange.seen.json["input"]
            kept = [{"type": "message", **each} for each in items if each.get("role") == "user"]
            sealed = {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAA"}
            usage = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}
            told = {"id": "resp_c", "object": "response.compaction", "usage": usage}
            told["output"] = [*kept, sealed]
        case "POST", "cancel":
            told["status"] = "cancelled"
        case "GET", "input_items":
            told = {"object": "list", "has_more": False}
            told["data"] = [{"id": "msg_in", "type": "message"}]
        case "GET", _ if reply_id.startswith(LATER):
            told |= {"usage": _LATER_USAGE, "output": []}
            if "stream=true" in exchange.seen.query:
                delta = {"type": "response.output_text.delta", "delta": "response.completed"}
                ended = _sse({"type": "response.completed", "response": told}, 4)
                await exchange.reply(200, _sse(delta, 3) + ended, kind="text/event-stream")
                return
        case "GET" | "DELETE", _:
            pass
        case _:
            trouble = OpenAI().trouble("url")
            await exchange.reply(trouble.status, trouble.body)
            return
    await exchange.reply(200, json.dumps({**told, "output": told.get("output", [])}).encode())


def _is_plain(exchange: Exchange) -> bool:
    return dict(exchange.seen.headers)["Host"].startswith(PLAIN_HOST)


def _read(body: dict[str, Any]) -> Asked:
    given = body.get("input")
    need(isinstance(given, str | list), "input", "expected a string or items")
    items = given if isinstance(given, list) else [{"role": "user", "content": given}]
    form = (body.get("text") or {}).get("format") or {}
    last = items[-1] if items else {}
    return Asked(
        model=body["model"],
        stream=bool(body.get("stream")),
        tools=tuple(tool["name"] for tool in body.get("tools") or [] if "name" in tool),
        has_tool_result=last.get("type") == "function_call_output",
        schema=form.get("schema") if form.get("type") == "json_schema" else None,
        text=str(last.get("content") or ""),
        images=json.dumps(items).count('"input_image"'),
    )


def _response(asked: Asked, play: Play, *, output: Any, is_done: bool) -> dict[str, Any]:
    reason = _INCOMPLETE.get(play.end) if is_done else None
    status = "incomplete" if reason else "completed" if is_done else "in_progress"
    return {
        "id": _id_of(asked),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": f"{asked.model}-2026-01-01",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(play) if is_done else None,
    }


def _id_of(asked: Asked) -> str:
    if asked.behaviour == "endless":
        return f"{LATER}{asked.model.partition('.')[2]}"
    return f"resp_{uuid4().hex}" if asked.behaviour == "chained" else RESPONSE_ID


def _usage(play: Play) -> dict[str, Any] | None:
    tokens = play.tokens
    if tokens is None or play.usage_form != "normal":
        return None
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {
            "cached_tokens": tokens.cached,
            "cache_write_tokens": tokens.written,
        },
        "output_tokens": tokens.completion,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.prompt + tokens.completion,
    }


def _items(play: Play) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [_OWN_ITEM] if play.tokens and play.tokens.cached else []
    if play.thoughts:
        summary = [{"type": "summary_text", "text": play.thinking}]
        items.append(
            {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": "gAAA"}
        )
    said = [{"type": "output_text", "text": play.text, "annotations": []}] if play.text else []
    if play.refusal is not None:
        said = [{"type": "refusal", "refusal": play.refusal}]
    if said:
        items.append(
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
             "content": said}
        )  # fmt: skip
    items += [
        {"id": f"fc_{use.id}", "type": "function_call", "call_id": use.id, "name": use.name,
         "arguments": json.dumps(use.arguments, ensure_ascii=False), "status": "completed"}
        for use in play.uses
    ]  # fmt: skip
    return items


def _events_of_item(item: dict[str, Any], play: Play) -> list[dict[str, Any]]:
    begun = {**item, "status": "in_progress"}
    deltas: list[dict[str, Any]] = []
    if item["type"] == "message":
        begun["content"] = []
        kind, member = ("refusal", "refusal") if play.refusal else ("output_text", "text")
        pieces = (play.refusal,) if play.refusal else play.pieces
        empty = {"type": kind, member: ""}
        place = {"item_id": "msg_1", "content_index": 0}
        deltas.append({"type": "response.content_part.added", **place, "part": empty})
        deltas += [{"type": f"response.{kind}.delta", **place, "delta": each} for each in pieces]
        deltas.append({"type": f"response.{kind}.done", **place, member: "".join(pieces)})
    if item["type"] == "function_call":
        begun["arguments"] = ""
        text, kind = item["arguments"], "response.function_call_arguments"
        deltas += [
            {"type": f"{kind}.delta", "item_id": item["id"], "delta": text[at : at + 5]}
            for at in range(0, len(text), 5)
        ]
        deltas.append({"type": f"{kind}.done", "item_id": item["id"], "arguments": text})
    if item["type"] == "reasoning":
        begun["summary"] = []
        deltas += [
            {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": each}
            for each in play.thoughts
        ]
    return [
        {"type": "response.output_item.added", "item": begun},
        *deltas,
        {"type": "response.output_item.done", "item": item},
    ]


def _sse(event: dict[str, Any], number: int) -> bytes:
    text = json.dumps({**event, "sequence_number": number}, ensure_ascii=False)
    return f"event: {event['type']}\ndata: {text}\n\n".encode()
