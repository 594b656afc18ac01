"""The four official SDKs behind one face, so that each can be asked for the same things."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import anthropic
import ollama
import openai
from google import genai

# A transparent pixel.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)
TOOL = "get_weather"
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Its name."},
        "days": {"type": "integer"},
    },
    "required": ["city"],
    "additionalProperties": False,
}
DESCRIPTION = "The weather of a city."
SYSTEM = "Answer in one sentence."
QUESTION = "What is the weather like?"
RESULT = "Rain."


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a client got."""

    text: str = ""
    tools: tuple[tuple[str, dict[str, Any]], ...] = ()
    finish: str | None = None
    prompt: int | None = None
    completion: int | None = None
    raw: Any = None


class Client(Protocol):
    """One SDK, unmodified but for base URL and key."""

    def chat(self, model: str, text: str = QUESTION) -> Said: ...

    def stream(self, model: str, text: str = QUESTION) -> Said: ...

    def use_tools(self, model: str) -> Said: ...

    def stream_tools(self, model: str) -> Said: ...

    def tell_results(self, model: str) -> Said:
        """The second half of a tool loop: the call and its result in the history."""

    def look(self, model: str) -> Said:
        """Send an image."""

    def leave_early(self, model: str) -> None:
        """Open a stream, read a piece of it, and leave."""

    def want_json(self, model: str) -> Said:
        """Ask for JSON with the members city and days."""


class OpenAIClient:
    """openai"""

    def __init__(self, url: str, key: str, *, path: str = "/v1") -> None:
        # Any: the SDKs' overloads do not take plain dictionaries.
        self.sdk: Any = openai.OpenAI(base_url=url + path, api_key=key, max_retries=0, timeout=30)

    def chat(self, model: str, text: str = QUESTION) -> Said:
        return _openai(self.sdk.chat.completions.create(model=model, messages=self._messages(text)))

    def stream(self, model: str, text: str = QUESTION) -> Said:
        return self._streamed(model=model, messages=self._messages(text))

    def use_tools(self, model: str) -> Said:
        return _openai(
            self.sdk.chat.completions.create(
                model=model, messages=self._messages(QUESTION), tools=self._tools()
            )
        )

    def stream_tools(self, model: str) -> Said:
        return self._streamed(
            model=model, messages=self._messages(QUESTION), tools=self._tools(), tool_choice="auto"
        )

    def tell_results(self, model: str) -> Said:
        call = {"name": TOOL, "arguments": '{"city": "Zürich"}'}
        messages: Any = [
            *self._messages(QUESTION),
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": RESULT},
        ]
        return _openai(
            self.sdk.chat.completions.create(model=model, messages=messages, tools=self._tools())
        )

    def look(self, model: str) -> Said:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
        messages: Any = [{"role": "user", "content": [{"type": "text", "text": "See?"}, image]}]
        return _openai(self.sdk.chat.completions.create(model=model, messages=messages))

    def leave_early(self, model: str) -> None:
        messages = self._messages(QUESTION)
        _leave(self.sdk.chat.completions.create(model=model, messages=messages, stream=True))

    def want_json(self, model: str) -> Said:
        wanted = {"name": "weather", "strict": True, "schema": PARAMETERS}
        return _openai(
            self.sdk.chat.completions.create(
                model=model,
                messages=self._messages(QUESTION),
                response_format={"type": "json_schema", "json_schema": wanted},
            )
        )

    def _streamed(self, **asked: Any) -> Said:
        options = {"include_usage": True}
        text, finish, usage = "", None, None
        calls: list[Any] = []
        with self.sdk.chat.completions.create(
            stream=True, stream_options=options, **asked
        ) as chunks:
            for chunk in chunks:
                usage = chunk.usage or usage
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    finish = choice.finish_reason or finish
                    calls += choice.delta.tool_calls or []
        assert usage is not None
        return Said(
            text=text,
            tools=_joined(calls),
            finish=finish,
            prompt=usage.prompt_tokens,
            completion=usage.completion_tokens,
        )

    @staticmethod
    def _messages(text: str) -> Any:
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]

    @staticmethod
    def _tools() -> Any:
        function = {"name": TOOL, "description": DESCRIPTION, "parameters": PARAMETERS}
        return [{"type": "function", "function": function}]


class AnthropicClient:
    """anthropic"""

    def __init__(self, url: str, key: str) -> None:
        self.sdk = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0, timeout=30)

    def chat(self, model: str, text: str = QUESTION) -> Said:
        return self._ask(model, [{"role": "user", "content": text}])

    def stream(self, model: str, text: str = QUESTION) -> Said:
        return self._streamed(model=model, messages=[{"role": "user", "content": text}])

    def use_tools(self, model: str) -> Said:
        return self._ask(model, [{"role": "user", "content": QUESTION}], tools=self._tools())

    def stream_tools(self, model: str) -> Said:
        messages = [{"role": "user", "content": QUESTION}]
        return self._streamed(model=model, messages=messages, tools=self._tools())

    def tell_results(self, model: str) -> Said:
        use = {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {"city": "Zürich"}}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": RESULT}
        messages = [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]},
            {"role": "user", "content": [result]},
        ]
        return self._ask(model, messages, tools=self._tools())

    def look(self, model: str) -> Said:
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        content = [{"type": "image", "source": source}, {"type": "text", "text": "See?"}]
        return self._ask(model, [{"role": "user", "content": content}])

    def leave_early(self, model: str) -> None:
        messages: Any = [{"role": "user", "content": QUESTION}]
        _leave(
            self.sdk.messages.create(model=model, messages=messages, max_tokens=500, stream=True)
        )

    def want_json(self, model: str) -> Said:
        wanted = {"format": {"type": "json_schema", "schema": PARAMETERS}}
        return self._ask(model, [{"role": "user", "content": QUESTION}], output_config=wanted)

    def _ask(self, model: str, messages: list[Any], **more: Any) -> Said:
        message = self.sdk.messages.create(
            model=model, max_tokens=500, system=SYSTEM, messages=messages, **more
        )
        return _anthropic(message)

    def _streamed(self, **asked: Any) -> Said:
        with self.sdk.messages.stream(max_tokens=500, system=SYSTEM, **asked) as stream:
            return _anthropic(stream.get_final_message())

    @staticmethod
    def _tools() -> list[Any]:
        return [{"name": TOOL, "description": DESCRIPTION, "input_schema": PARAMETERS}]


class GeminiClient:
    """google-genai"""

    def __init__(self, url: str, key: str) -> None:
        options = genai.types.HttpOptions(base_url=url, timeout=30_000)
        self.sdk = genai.Client(api_key=key, http_options=options)

    def chat(self, model: str, text: str = QUESTION) -> Said:
        return self._ask(model, text)

    def stream(self, model: str, text: str = QUESTION) -> Said:
        return self._streamed(model, self._config())

    def use_tools(self, model: str) -> Said:
        return self._ask(model, QUESTION, tools=self._tools())

    def stream_tools(self, model: str) -> Said:
        return self._streamed(model, self._config(tools=self._tools()))

    def tell_results(self, model: str) -> Said:
        contents = [
            genai.types.UserContent(QUESTION),
            genai.types.ModelContent(
                genai.types.Part.from_function_call(name=TOOL, args={"city": "Zürich"})
            ),
            genai.types.UserContent(
                genai.types.Part.from_function_response(name=TOOL, response={"result": RESULT})
            ),
        ]
        return self._ask(model, contents, tools=self._tools())

    def look(self, model: str) -> Said:
        pixel = genai.types.Part.from_bytes(data=base64.b64decode(PIXEL), mime_type="image/png")
        return self._ask(model, [pixel, "See?"])

    def leave_early(self, model: str) -> None:
        _leave(self.sdk.models.generate_content_stream(model=model, contents=QUESTION))

    def want_json(self, model: str) -> Said:
        return self._ask(
            model,
            QUESTION,
            response_mime_type="application/json",
            response_json_schema=PARAMETERS,
        )

    def _ask(self, model: str, contents: Any, **config: Any) -> Said:
        answer = self.sdk.models.generate_content(
            model=model, contents=contents, config=self._config(**config)
        )
        return _gemini([answer])

    def _streamed(self, model: str, config: genai.types.GenerateContentConfig) -> Said:
        chunks = self.sdk.models.generate_content_stream(
            model=model, contents=QUESTION, config=config
        )
        return _gemini(chunks)

    @staticmethod
    def _config(**more: Any) -> genai.types.GenerateContentConfig:
        return genai.types.GenerateContentConfig(system_instruction=SYSTEM, **more)

    @staticmethod
    def _tools() -> list[genai.types.Tool]:
        function = genai.types.FunctionDeclaration(
            name=TOOL, description=DESCRIPTION, parameters_json_schema=PARAMETERS
        )
        return [genai.types.Tool(function_declarations=[function])]


class OllamaClient:
    """ollama"""

    def __init__(self, url: str, key: str) -> None:
        headers = {"authorization": f"Bearer {key}"}
        self.sdk = ollama.Client(host=url, headers=headers, timeout=30)

    def chat(self, model: str, text: str = QUESTION) -> Said:
        return self._ask(model, self._messages(text))

    def stream(self, model: str, text: str = QUESTION) -> Said:
        return _ollama(self.sdk.chat(model, messages=self._messages(text), stream=True))

    def use_tools(self, model: str) -> Said:
        return self._ask(model, self._messages(QUESTION), tools=self._tools())

    def stream_tools(self, model: str) -> Said:
        return _ollama(
            self.sdk.chat(
                model, messages=self._messages(QUESTION), tools=self._tools(), stream=True
            )
        )

    def tell_results(self, model: str) -> Said:
        call = {"function": {"name": TOOL, "arguments": {"city": "Zürich"}}}
        messages = [
            *self._messages(QUESTION),
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": RESULT, "tool_name": TOOL},
        ]
        return self._ask(model, messages, tools=self._tools())

    def look(self, model: str) -> Said:
        return self._ask(model, [{"role": "user", "content": "See?", "images": [PIXEL]}])

    def leave_early(self, model: str) -> None:
        _leave(self.sdk.chat(model, messages=self._messages(QUESTION), stream=True))

    def want_json(self, model: str) -> Said:
        return self._ask(model, self._messages(QUESTION), format=PARAMETERS)

    def _ask(self, model: str, messages: Sequence[Any], **more: Any) -> Said:
        return _ollama([self.sdk.chat(model, messages=messages, **more)])

    @staticmethod
    def _messages(text: str) -> list[Any]:
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]

    @staticmethod
    def _tools() -> list[Any]:
        function = {"name": TOOL, "description": DESCRIPTION, "parameters": PARAMETERS}
        return [{"type": "function", "function": function}]


_CLASSES: dict[str, Any] = {
    "openai": OpenAIClient,
    "anthropic": AnthropicClient,
    "gemini": GeminiClient,
    "ollama": OllamaClient,
}


@contextmanager
def open_client(shape: str, url: str, key: str) -> Iterator[Any]:
    """An SDK's client, closed at the end."""
    client = _CLASSES[shape](url, key)
    try:
        yield client
    finally:
        close = getattr(client.sdk, "close", None) or client.sdk._client.close
        close()


def _leave(stream: Any) -> None:
    """Read a few pieces, text among them, and hang up."""
    pieces = iter(stream)
    for _ in range(5):
        next(pieces)
    stream.close()


def _openai(answer: Any) -> Said:
    (choice,) = answer.choices
    calls = choice.message.tool_calls or []
    return Said(
        text=choice.message.content or "",
        tools=tuple((call.function.name, json.loads(call.function.arguments)) for call in calls),
        finish=choice.finish_reason,
        prompt=answer.usage and answer.usage.prompt_tokens,
        completion=answer.usage and answer.usage.completion_tokens,
        raw=answer,
    )


def _joined(deltas: Iterable[Any]) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The tool calls of a stream, put together as OpenAI's guide does it."""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    for delta in deltas:
        names.setdefault(delta.index, delta.function.name or "")
        arguments[delta.index] = arguments.get(delta.index, "") + (delta.function.arguments or "")
    return tuple((name, json.loads(arguments[index])) for index, name in names.items())


def _anthropic(message: Any) -> Said:
    blocks = message.content
    return Said(
        text="".join(block.text for block in blocks if block.type == "text"),
        tools=tuple((block.name, block.input) for block in blocks if block.type == "tool_use"),
        finish=message.stop_reason,
        prompt=message.usage.input_tokens,
        completion=message.usage.output_tokens,
        raw=message,
    )


def _gemini(answers: Iterable[Any]) -> Said:
    text, finish, usage = "", None, None
    calls: list[Any] = []
    for answer in answers:
        usage = answer.usage_metadata or usage
        for candidate in answer.candidates or []:
            finish = candidate.finish_reason or finish
            for part in (candidate.content and candidate.content.parts) or []:
                text += part.text or "" if not part.thought else ""
                if part.function_call is not None:
                    calls.append((part.function_call.name, part.function_call.args))
    return Said(
        text=text,
        tools=tuple(calls),
        finish=finish and finish.value,
        prompt=usage and usage.prompt_token_count,
        completion=usage and usage.candidates_token_count,
    )


def _ollama(answers: Iterable[Any]) -> Said:
    text, last = "", None
    calls: list[Any] = []
    for answer in answers:
        text += answer.message.content or ""
        calls += answer.message.tool_calls or []
        last = answer
    assert last is not None
    return Said(
        text=text,
        tools=tuple((call.function.name, dict(call.function.arguments)) for call in calls),
        finish=last.done_reason,
        prompt=last.prompt_eval_count,
        completion=last.eval_count,
        raw=last,
    )
