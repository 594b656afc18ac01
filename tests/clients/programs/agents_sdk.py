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
client = AsyncOpenAI(base_url=os.environ["GATEWAY"] + "/v1", api_key=os.environ["HELMDASH_API_KEY"])


async def tell(api: str, mark: str, model: str) -> dict[str, object]:
    speaks = OpenAIChatCompletionsModel if api == "chat" else OpenAIResponsesModel
    speaker = speaks(model=model, openai_client=client)
    told: dict[str, object] = {}

    @function_tool
    def weather(city: str, days: int) -> str:
        """The weather of a city."""
        told["tool"] = city
        return "12 degrees"

    helper = Agent(name="helper", instructions=f"{mark} helper", model=speaker)

    @function_tool
    async def ask_helper(city: str, days: int) -> str:
        """Ask the helper about a city."""
        return (await Runner.run(helper, f"{mark} part: {city}")).final_output

    plain = Agent(name="plain", instructions="Answer.", model=speaker)
    told["create"] = (await Runner.run(plain, f"{mark} create")).final_output
    streamed = Runner.run_streamed(plain, f"{mark} stream")
    async for _ in streamed.stream_events():
        pass
    told["stream"] = streamed.final_output
    tooled = Agent(name="tooled", instructions="Use it.", model=speaker, tools=[weather])
    told["tools"] = (await Runner.run(tooled, f"{mark} tools")).final_output
    leading = Agent(name="leading", instructions="Ask.", model=speaker, tools=[ask_helper])
    told["lead"] = (await Runner.run(leading, f"{mark} lead")).final_output
    return told


async def main() -> None:
    print(json.dumps([await tell(**case) for case in json.loads(os.environ["CASES"])]))


asyncio.run(main())
