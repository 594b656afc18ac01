"""The official openai SDK's other API, behind the same face as the others."""

from __future__ import annotations

import json
from typing import Any

import openai

from tests.gateway.clients import (
    DESCRIPTION,
    PARAMETERS,
    PIXEL,
    QUESTION,
    RESULT,
    SYSTEM,
    TOOL,
    Said,
)


class ResponsesClient:
    """openai's other API"""

    def __init__(self, url: str, key: str) -> None:
        # Any: the SDKs' overloads do not take plain dictionaries.
        self.sdk: Any = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0, timeout=30)

    def close(self) -> None:
        self.sdk.close()

    def chat(self, model: str, text: str = QUESTION) -> Said:
        return self._ask(model=model, input=text)

    def stream(self, model: str, text: str = QUESTION) -> Said:
        return self._streamed(model=model, input=text)

    def use_tools(self, model: str) -> Said:
        return self._ask(model=model, input=QUESTION, tools=self._tools())

    def stream_tools(self, model: str) -> Said:
        return self._streamed(model=model, input=QUESTION, tools=self._tools(), tool_choice="auto")

    def tell_results(self, model: str) -> Said:
        call = {"type": "function_call", "name": TOOL, "arguments": '{"city": "Zürich"}'}
        items = [
            {"role": "user", "content": QUESTION},
            {**call, "call_id": "call_1"},
            {"type": "function_call_output", "call_id": "call_1", "output": RESULT},
        ]
        return self._ask(model=model, input=items, tools=self._tools())

    def look(self, model: str) -> Said:
        image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
        said = {"type": "input_text", "text": "See?"}
        return self._ask(model=model, input=[{"role": "user", "content": [said, image]}])

    def leave_early(self, model: str) -> None:
        # Two events tell of the response, two of its message.
        stream = self.sdk.responses.create(model=model, input=QUESTION, stream=True)
        pieces = iter(stream)
        while next(pieces).type != "response.output_text.delta":
            pass
        stream.close()

    def want_json(self, model: str) -> Said:
        form = {"type": "json_schema", "name": "weather", "strict": True, "schema": PARAMETERS}
        return self._ask(model=model, input=QUESTION, text={"format": form})

    def _ask(self, **asked: Any) -> Said:
        return _responses(self.sdk.responses.create(instructions=SYSTEM, **asked))

    def _streamed(self, **asked: Any) -> Said:
        with self.sdk.responses.stream(instructions=SYSTEM, **asked) as stream:
            return _responses(stream.get_final_response())

    @staticmethod
    def _tools() -> Any:
        function = {"name": TOOL, "description": DESCRIPTION, "parameters": PARAMETERS}
        return [{"type": "function", **function}]


def _responses(answer: Any) -> Said:
    calls = [item for item in answer.output if item.type == "function_call"]
    return Said(
        text=answer.output_text,
        tools=tuple((call.name, json.loads(call.arguments)) for call in calls),
        finish=answer.status,
        prompt=answer.usage.input_tokens,
        completion=answer.usage.output_tokens,
        raw=answer,
    )
