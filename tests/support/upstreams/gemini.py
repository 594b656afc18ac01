"""Gemini's API as it is on the wire: generateContent, streams, countTokens, embeddings, models.

Source: ai.google.dev/api (generate-content, tokens, embeddings, models) and its troubleshooting
page for the errors. Unknown members are refused, as protobuf's JSON reader does.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs

from tests.support.upstreams.checking import LISTED, Invalid, behaviours, known, need
from tests.support.upstreams.faults import Stage, Trouble
from tests.support.upstreams.http import Exchange
from tests.support.upstreams.plays import Asked, End, Play, Tokens, play_for

PREFIX = "gemini"
COUNTED_TOKENS = 31
VECTOR = (0.5, -0.25, 0.125, 1.0)
_FINISH = {
    End.STOP: "STOP",
    End.LENGTH: "MAX_TOKENS",
    End.TOOLS: "STOP",
    End.REFUSAL: "SAFETY",
    End.FILTER: "SAFETY",
    End.NOT_SAID: None,
}
_MEMBERS = """
    contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent
    labels store model serviceTier
""".split()
_GENERATION = """
    temperature topP topK candidateCount maxOutputTokens stopSequences responseMimeType
    responseSchema responseJsonSchema seed presencePenalty frequencyPenalty responseLogprobs
    logprobs thinkingConfig responseModalities speechConfig mediaResolution imageConfig
""".split()
_PARTS = """
    text inlineData fileData functionCall functionResponse thought thoughtSignature executableCode
    codeExecutionResult videoMetadata mediaResolution
""".split()
# The part of OpenAPI 3.0 that `parameters` and `responseSchema` take.
_SCHEMA = """
    type format title description nullable enum maxItems minItems properties required
    minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default
    items minimum maximum
""".split()
# Objects whose members are the caller's, not Gemini's.
_THE_CALLERS_OWN = {"args", "response", "properties", "parametersJsonSchema", "responseJsonSchema"}
_SNAKE = re.compile(r"_([a-z])")


class Gemini:
    """The wire format; see `faults.Vendor`."""

    stream_type = "text/event-stream"

    def whole(self, asked: Asked, play: Play) -> bytes:
        reason = _FINISH[play.end]
        return json.dumps(
            _answer(asked, _parts(play), reason, play), indent=2, ensure_ascii=False
        ).encode()

    def frames(self, asked: Asked, play: Play) -> list[bytes]:
        pieces: list[list[dict[str, Any]]] = [
            *([{"text": thought, "thought": True}] for thought in play.thoughts),
            *([{"text": piece}] for piece in play.pieces),
            *([part] for part in _parts(play) if "functionCall" in part),
        ]
        frames = [_answer(asked, parts, None, play) for parts in pieces[:-1]]
        last = pieces[-1] if pieces else []
        frames.append(_answer(asked, last, _FINISH[play.end], play))
        return [_sse(frame) for frame in frames]

    def trouble(self, kind: str) -> Trouble:
        status, name, message = _TROUBLE.get(kind, _TROUBLE["server"])
        body = json.dumps(_error(status, name, message), indent=2)
        return Trouble(status=status, body=body.encode() + b"\n")

    def trouble_in_stream(self) -> bytes:
        return _sse(_error(503, "UNAVAILABLE", _TROUBLE["overloaded"][2]))


class GeminiArray(Gemini):
    """Without `alt=sse`, a stream is one JSON array that grows."""

    stream_type = "application/json; charset=UTF-8"

    def frames(self, asked: Asked, play: Play) -> list[bytes]:
        events = [frame[6:].rstrip() for frame in super().frames(asked, play)]
        return [b"[" + events[0], *(b"\r\n,\r\n" + event for event in events[1:]), b"\r\n]"]

    def trouble_in_stream(self) -> bytes:
        return b"\r\n,\r\n" + super().trouble_in_stream()[6:].rstrip() + b"]"


class GeminiServer:
    """Routes of generativelanguage.googleapis.com."""

    def __init__(self, *, outsider_url: str) -> None:
        self._vendor = Gemini()
        self._stage = Stage(self._vendor, outsider_url=outsider_url)
        self._array_stage = Stage(GeminiArray(), outsider_url=outsider_url)

    async def __call__(self, exchange: Exchange) -> None:
        seen = exchange.seen
        if not seen.header("x-goog-api-key"):
            await self._trouble(exchange, "key")
            return
        try:
            await self._route(exchange)
        except Invalid as error:
            message = f"Invalid JSON payload received. {error.where}: {error.message}"
            body = json.dumps(_error(400, "INVALID_ARGUMENT", message))
            await exchange.reply(400, body.encode())

    async def _route(self, exchange: Exchange) -> None:
        seen = exchange.seen
        _, version, *rest = seen.path.split("/")
        if version not in {"v1", "v1beta"} or rest[:1] != ["models"] or len(rest) > 2:
            await exchange.reply(
                404, b"<!DOCTYPE html>\n<title>Error 404</title>\n", kind="text/html"
            )
            return
        model, _, method = "".join(rest[1:]).partition(":")
        match seen.method, method:
            case "POST", "generateContent" | "streamGenerateContent":
                asked = read(seen.json, model=model, stream=method != "generateContent")
                await self._generate(exchange, asked)
            case "POST", "countTokens":
                known(seen.json, ("contents", "generateContentRequest"), "")
                counted = {"totalTokens": COUNTED_TOKENS}
                await exchange.reply(200, json.dumps(counted, indent=2).encode())
            case "POST", "embedContent":
                await exchange.reply(200, _json({"embedding": {"values": list(VECTOR)}}))
            case "POST", "batchEmbedContents":
                one = {"values": list(VECTOR)}
                many = [one for _ in seen.json["requests"]]
                await exchange.reply(200, _json({"embeddings": many}))
            case "GET", "":
                await exchange.reply(200, _json(_models()))
            case _:
                await self._trouble(exchange, "model")

    async def _generate(self, exchange: Exchange, asked: Asked) -> None:
        if asked.behaviour != "blocked":
            events = parse_qs(exchange.seen.query).get("alt") == ["sse"]
            await (self._stage if events else self._array_stage).perform(exchange, asked)
            return
        answer = _blocked(asked)
        if asked.stream:
            await exchange.reply(200, _sse(answer), kind=self._vendor.stream_type)
        else:
            await exchange.reply(200, json.dumps(answer, indent=2).encode())

    async def _trouble(self, exchange: Exchange, kind: str) -> None:
        trouble = self._vendor.trouble(kind)
        await exchange.reply(trouble.status, trouble.body)


def read(body: dict[str, Any], *, model: str, stream: bool) -> Asked:
    """Read a request as Gemini does. Raises Invalid."""
    body = _in_camel_case(body)
    known(body, _MEMBERS, "")
    contents = body.get("contents")
    need(contents, "contents", "contents is not specified")
    assert contents is not None
    for at, content in enumerate(contents):
        known(content, ("role", "parts"), f"contents[{at}].")
        need(content.get("role", "user") in {"user", "model"}, f"contents[{at}].role", "not valid")
        need(content.get("parts"), f"contents[{at}].parts", "must have at least one part")
        for part in content["parts"]:
            known(part, _PARTS, f"contents[{at}].parts.")
    if "systemInstruction" in body:
        known(body["systemInstruction"], ("role", "parts"), "systemInstruction.")
    config = body.get("generationConfig") or {}
    known(config, _GENERATION, "generationConfig.")
    if "responseSchema" in config:
        _check_schema(config["responseSchema"], "generationConfig.responseSchema.")
    tools = [
        function for tool in body.get("tools") or [] for function in tool["functionDeclarations"]
    ]
    for function in tools:
        known(
            function,
            "name description parameters parametersJsonSchema response behavior".split(),
            "tools.functionDeclarations.",
        )
        _check_schema(function.get("parameters") or {}, "tools.functionDeclarations.parameters.")
    parts = [part for content in contents for part in content["parts"]]
    return Asked(
        model=model,
        stream=stream,
        tools=tuple(function["name"] for function in tools),
        has_tool_result=any("functionResponse" in part for part in contents[-1]["parts"]),
        schema=_schema(config),
        images=sum("inlineData" in part or "fileData" in part for part in parts),
    )


def _in_camel_case(value: Any) -> Any:
    """Members as the documentation writes them: `response_mime_type` is understood as well."""
    if isinstance(value, list):
        return [_in_camel_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    renamed = {_SNAKE.sub(lambda found: found[1].upper(), name): name for name in value}
    return {
        name: value[old] if name in _THE_CALLERS_OWN else _in_camel_case(value[old])
        for name, old in renamed.items()
    }


def _check_schema(schema: dict[str, Any], where: str) -> None:
    known(schema, _SCHEMA, where)
    for name, inner in (schema.get("properties") or {}).items():
        _check_schema(inner, f"{where}properties.{name}.")
    if "items" in schema:
        _check_schema(schema["items"], f"{where}items.")


def _schema(config: dict[str, Any]) -> dict[str, Any] | None:
    if config.get("responseMimeType") != "application/json":
        return None
    return config.get("responseSchema") or config.get("responseJsonSchema") or {}


def _parts(play: Play) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if play.thoughts:
        parts.append({"text": play.thinking, "thought": True})
    if play.text:
        parts.append({"text": play.text})
    for use in play.uses:
        parts.append({"functionCall": {"name": use.name, "args": dict(use.arguments)}})
    return parts


def _answer(
    asked: Asked, parts: list[dict[str, Any]], reason: str | None, play: Play
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}}
    if not parts:
        candidate["content"] = {"role": "model"}
    if reason is not None:
        candidate["finishReason"] = reason
    candidate["index"] = 0
    if reason == "SAFETY":
        del candidate["content"]
        candidate["safetyRatings"] = [
            {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
        ]
    return {
        "candidates": [candidate],
        **_usage(play),
        "modelVersion": f"{asked.model}-001",
        "responseId": f"Sim-{asked.model}",
    }


def _blocked(asked: Asked) -> dict[str, Any]:
    tokens = play_for(asked).tokens
    assert tokens is not None
    return {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": tokens.prompt, "totalTokenCount": tokens.prompt},
        "modelVersion": f"{asked.model}-001",
        "responseId": f"Sim-{asked.model}",
    }


def _usage(play: Play) -> dict[str, Any]:
    if play.usage_form == "missing":
        return {}
    if play.usage_form == "null" or play.tokens is None:
        return {"usageMetadata": None}
    return {"usageMetadata": usage_of(play.tokens)}


def usage_of(tokens: Tokens) -> dict[str, Any]:
    """Usage as Gemini counts: thoughts are beside the candidates; counts of 0 are left out."""
    counts = {
        "promptTokenCount": tokens.prompt,
        "candidatesTokenCount": tokens.completion - tokens.reasoning,
        "totalTokenCount": tokens.prompt + tokens.completion,
        "cachedContentTokenCount": tokens.cached,
        "thoughtsTokenCount": tokens.reasoning,
    }
    details = [{"modality": "TEXT", "tokenCount": tokens.prompt}]
    told: dict[str, Any] = {name: count for name, count in counts.items() if count}
    return {**told, "promptTokensDetails": details} if told else {"promptTokenCount": 0}


def _models() -> dict[str, Any]:
    return {
        "models": [
            {
                "name": f"models/{name}",
                "version": "001",
                "displayName": name,
                "inputTokenLimit": 1_048_576,
                "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            }
            for name in behaviours(PREFIX, LISTED)
        ]
    }


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode()


def _sse(frame: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(frame, ensure_ascii=False)}\r\n\r\n".encode()


def _error(status: int, name: str, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": name}}


_TROUBLE: dict[str, tuple[int, str, str]] = {
    "rate": (
        429,
        "RESOURCE_EXHAUSTED",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "server": (500, "INTERNAL", "An internal error has occurred. Please retry or report."),
    "overloaded": (
        503,
        "UNAVAILABLE",
        "The model is overloaded. Please try again later.",
    ),
    "key": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    "model": (
        404,
        "NOT_FOUND",
        (
            "models/gemini-no-such-model is not found for API version v1beta, or is not "
            "supported for generateContent."
        ),
    ),
    "overflow": (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
}
