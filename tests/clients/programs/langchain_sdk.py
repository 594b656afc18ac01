"""LangChain's ChatOpenAI, by either of OpenAI's APIs: a turn, a stream, a form, and tools."""

from __future__ import annotations

import json
import os

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

MARK = os.environ["MARK"]


class City(BaseModel):
    city: str


@tool
def weather(city: str, days: int) -> str:
    """The weather of a city."""
    return "12 degrees"


model = ChatOpenAI(
    model=os.environ["MODEL"],
    base_url=os.environ["GATEWAY"] + "/v1",
    api_key=os.environ["HELMDASH_API_KEY"],
    use_responses_api=os.environ["API"] == "responses",
    stream_usage=True,
)
told = {"create": model.invoke(f"{MARK} create").text}
told["stream"] = "".join(chunk.text for chunk in model.stream(f"{MARK} stream"))
told["parse"] = model.with_structured_output(City).invoke(f"{MARK} parse").model_dump()
tooled = model.bind_tools([weather])
said = [HumanMessage(f"{MARK} tools")]
asked = tooled.invoke(said)
call = asked.tool_calls[0]
told["tool"] = call["args"]["city"]
said += [asked, ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])]
told["tools"] = tooled.invoke(said).text
print(json.dumps(told))
