"""LangChain's ChatOpenAI, by either of OpenAI's APIs: a turn, a stream, a form, and tools."""

from __future__ import annotations

import json
import os

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class City(BaseModel):
    city: str


@tool
def weather(city: str, days: int) -> str:
    """The weather of a city."""
    return "12 degrees"


def tell(api: str, mark: str, model: str) -> dict[str, object]:
    chat = ChatOpenAI(
        model=model,
        base_url=os.environ["GATEWAY"] + "/v1",
        api_key=os.environ["HELMDASH_API_KEY"],
        use_responses_api=api == "responses",
        stream_usage=True,
    )
    told: dict[str, object] = {"create": chat.invoke(f"{mark} create").text}
    told["stream"] = "".join(chunk.text for chunk in chat.stream(f"{mark} stream"))
    told["parse"] = chat.with_structured_output(City).invoke(f"{mark} parse").model_dump()
    tooled = chat.bind_tools([weather])
    said = [HumanMessage(f"{mark} tools")]
    asked = tooled.invoke(said)
    call = asked.tool_calls[0]
    told["tool"] = call["args"]["city"]
    said += [asked, ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])]
    told["tools"] = tooled.invoke(said).text
    return told


print(json.dumps([tell(**case) for case in json.loads(os.environ["CASES"])]))
