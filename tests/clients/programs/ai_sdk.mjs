// The Vercel AI SDK, by either of OpenAI's APIs: a turn, a stream, a form, and tools.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const { API, GATEWAY, HELMDASH_API_KEY, MARK, MODEL } = process.env;
const openai = createOpenAI({ baseURL: `${GATEWAY}/v1`, apiKey: HELMDASH_API_KEY });
const model = API === "chat" ? openai.chat(MODEL) : openai.responses(MODEL);
const told = {};

told.create = (await generateText({ model, prompt: `${MARK} create` })).text;
told.stream = await streamText({ model, prompt: `${MARK} stream` }).text;
const output = Output.object({ schema: z.object({ city: z.string() }) });
told.parse = (await generateText({ model, prompt: `${MARK} parse`, output })).output;
const weather = tool({
  description: "The weather of a city.",
  inputSchema: z.object({ city: z.string(), days: z.number() }),
  execute: ({ city }) => {
    told.tool = city;
    return "12 degrees";
  },
});
told.tools = (
  await generateText({
    model,
    prompt: `${MARK} tools`,
    tools: { weather },
    stopWhen: stepCountIs(3),
  })
).text;
console.log(JSON.stringify(told));
