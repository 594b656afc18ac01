"""The openai SDK's `responses`: create, stream, parse and tools. Run by tests/clients."""

from __future__ import annotations

import json
import os

import openai
from pydantic import BaseModel


class City(BaseModel):
    city: str


client = openai.OpenAI(
    base_url=os.environ["GATEWAY"] + "/v1", api_key=os.environ["HELMDASH_API_KEY"]
)
weather = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    "strict": True,
}


def tell(mark: str, model: str, **_: str) -> dict[str, object]:
    told: dict[str, object] = {}
    told["create"] = client.responses.create(model=model, input=f"{mark} create").output_text
    with client.responses.stream(model=model, input=f"{mark} stream") as stream:
        told["stream"] = "".join(
            event.delta for event in stream if event.type == "response.output_text.delta"
        )
    parsed = client.responses.parse(model=model, input=f"{mark} parse", text_format=City)
    told["parse"] = parsed.output_parsed.model_dump()
    items = [{"role": "user", "content": f"{mark} tools"}]
    asked = client.responses.create(model=model, input=items, tools=[weather])
    call = next(item for item in asked.output if item.type == "function_call")
    told["tool"] = json.loads(call.arguments)["city"]
    items += asked.output
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "12 degrees"})
    told["tools"] = client.responses.create(model=model, input=items, tools=[weather]).output_text
    return told


print(json.dumps([tell(**case) for case in json.loads(os.environ["CASES"])]))
