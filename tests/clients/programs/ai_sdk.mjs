// The Vercel AI SDK, by either of OpenAI's APIs: a turn, a stream, a form, and tools.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const { CASES, GATEWAY, HELMDASH_API_KEY } = process.env;
const openai = createOpenAI({ baseURL: `${GATEWAY}/v1`, apiKey: HELMDASH_API_KEY });

async function tell({ api, mark, model: name }) {
  const model = api === "chat" ? openai.chat(name) : openai.responses(name);
  const told = {};
  told.create = (await generateText({ model, prompt: `${mark} create` })).text;
  told.stream = await streamText({ model, prompt: `${mark} stream` }).text;
  const output = Output.object({ schema: z.object({ city: z.string() }) });
  told.parse = (await generateText({ model, prompt: `${mark} parse`, output })).output;
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
      prompt: `${mark} tools`,
      tools: { weather },
      stopWhen: stepCountIs(3),
    })
  ).text;
  return told;
}

const told = [];
for (const each of JSON.parse(CASES)) told.push(await tell(each));
console.log(JSON.stringify(told));
