"""openai-agents: a turn, a stream, tools, and an agent that is a tool of another."""

from __future__ import annotations

import asyncio
import json
import os

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

set_tracing_disabled(True)  # traces go to OpenAI's own address
MARK, MODEL = os.environ["MARK"], os.environ["MODEL"]
client = AsyncOpenAI(base_url=os.environ["GATEWAY"] + "/v1", api_key=os.environ["HELMDASH_API_KEY"])
speaks = OpenAIChatCompletionsModel if os.environ["API"] == "chat" else OpenAIResponsesModel
model = speaks(model=MODEL, openai_client=client)
told = {}


@function_tool
def weather(city: str, days: int) -> str:
    """The weather of a city."""
    told["tool"] = city
    return "12 degrees"


helper = Agent(name="helper", instructions=f"{MARK} helper", model=model)


@function_tool
async def ask_helper(city: str, days: int) -> str:
    """Ask the helper about a city."""
    return (await Runner.run(helper, f"{MARK} part: {city}")).final_output


async def main() -> None:
    plain = Agent(name="plain", instructions="Answer.", model=model)
    told["create"] = (await Runner.run(plain, f"{MARK} create")).final_output
    streamed = Runner.run_streamed(plain, f"{MARK} stream")
    async for _ in streamed.stream_events():
        pass
    told["stream"] = streamed.final_output
    tooled = Agent(name="tooled", instructions="Use it.", model=model, tools=[weather])
    told["tools"] = (await Runner.run(tooled, f"{MARK} tools")).final_output
    leading = Agent(name="leading", instructions="Ask.", model=model, tools=[ask_helper])
    told["lead"] = (await Runner.run(leading, f"{MARK} lead")).final_output


asyncio.run(main())
print(json.dumps(told))
