/** Responses of the compiled program, judged by `ai` with @ai-sdk/openai, whose default model asks for them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import {
  BOTH,
  CITIES,
  degrees,
  failureOf,
  HELLO,
  LONG,
  ONE,
  type ResponsesServer,
  startResponses,
  THOUGHT,
  YES,
} from "./support/responses.ts";

let server: ResponsesServer;
let model: ReturnType<ReturnType<typeof createOpenAI>>;
beforeAll(async () => {
  server = await startResponses();
  model = createOpenAI({ baseURL: `${server.gateway.url}/v1`, apiKey: "none" })(server.model);
}, BUILD_MS);
afterAll(() => server?.stop());

const ask = (prompt: string) => ({ model, prompt, maxRetries: 0, onError() {} });
const weather = (asked: string[]) => ({
  get_weather: tool({
    description: "Tells the weather",
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => {
      asked.push(city);
      return { city, degrees: 4 };
    },
  }),
});

test(covers("Responses", "text", "ai + @ai-sdk/openai"), async () => {
  const { text, finishReason, usage, response } = await generateText(ask("say hello"));
  expect([text, finishReason]).toEqual([HELLO, "stop"]);
  expect(usage.outputTokens).toBeGreaterThan(5);
  expect(response.id).toStartWith("resp_");
});

test(covers("Responses", "stream", "ai + @ai-sdk/openai"), async () => {
  const result = streamText(ask("say hello"));
  let text = "";
  for await (const piece of result.textStream) text += piece;
  expect([text, await result.finishReason]).toEqual([HELLO, "stop"]);
});

/** Reasoning is shown where it is a summary: the package knows no other. */
test(covers("Responses", "reasoning", "ai + @ai-sdk/openai"), async () => {
  const providerOptions = { openai: { reasoningSummary: "auto", forceReasoning: true } };
  const whole = await generateText({ ...ask("think first"), providerOptions });
  expect([whole.reasoningText?.trim(), whole.text.trim()]).toEqual([THOUGHT, YES]);
  const streamed = streamText({ ...ask("think first"), providerOptions });
  let pieces = 0;
  for await (const part of streamed.fullStream) if (part.type === "reasoning-delta" && part.text !== "") pieces++;
  expect(pieces).toBeGreaterThan(1);
  expect((await streamed.reasoningText)?.trim()).toBe(THOUGHT);
  expect((await streamed.text).trim()).toBe(YES);
});

test(covers("Responses", "reasoning that is not shown", "ai + @ai-sdk/openai"), async () => {
  const { text, usage } = await generateText(ask("think first"));
  expect(text.trim()).toBe(YES);
  expect(usage.outputTokenDetails.reasoningTokens).toBeGreaterThan(0);
});

const loop = (
  prompt: string,
  asked: string[],
  openai: { store?: boolean; include?: "reasoning.encrypted_content"[] },
) => ({
  ...ask(prompt),
  tools: weather(asked),
  stopWhen: stepCountIs(3),
  providerOptions: { openai: { ...openai, reasoningSummary: "auto", forceReasoning: true } },
});
/** Rounds refer to what the server has kept, or bring everything with them, thoughts sealed. */
const MEMORIES = [{}, { store: false, include: ["reasoning.encrypted_content"] }] satisfies Parameters<
  typeof loop
>[2][];

test(covers("Responses", "one tool", "ai + @ai-sdk/openai"), async () => {
  for (const memory of MEMORIES) {
    const asked: string[] = [];
    const { text, steps } = await generateText(loop("weather of Oslo", asked, memory));
    expect([text, asked, steps.length]).toEqual([ONE, ["Oslo"], 2]);
    expect(steps[0]!.finishReason).toBe("tool-calls");
    expect(steps[0]!.reasoningText?.trim()).toBe("One town.");
  }
});

test(covers("Responses", "parallel tools", "ai + @ai-sdk/openai"), async () => {
  for (const memory of MEMORIES) {
    const asked: string[] = [];
    const result = streamText(loop("both towns", asked, memory));
    await result.consumeStream();
    expect([await result.text, asked]).toEqual([BOTH, CITIES]);
  }
});

test(covers("Responses", "structured output", "ai + @ai-sdk/openai"), async () => {
  const schema = z.object({ city: z.string(), degrees: z.number() });
  const { output } = await generateText({ ...ask("say JSON"), output: Output.object({ schema }) });
  expect(output).toEqual(JSON.parse(degrees("Oslo")));
  const streamed = streamText({ ...ask("say JSON"), output: Output.object({ schema }) });
  await streamed.consumeStream();
  expect(await streamed.output).toEqual(JSON.parse(degrees("Oslo")));
});

test(covers("Responses", "error before the first byte", "ai + @ai-sdk/openai"), async () => {
  const error = await failureOf(generateText(ask("refuse")));
  expect(APICallError.isInstance(error)).toBe(true);
  expect(error).toMatchObject({ statusCode: 500, message: "boom" });
  expect(await failureOf(generateText(ask("refuse busy")))).toMatchObject({ statusCode: 429, isRetryable: true });
});

test(covers("Responses", "error after it", "ai + @ai-sdk/openai"), async () => {
  for (const prompt of ["fail midway", "cut midway"]) {
    const errors: unknown[] = [];
    let text = "";
    for await (const part of streamText(ask(prompt)).fullStream) {
      if (part.type === "text-delta") text += part.text;
      if (part.type === "error") errors.push(part.error);
    }
    expect(text).toStartWith("alpha");
    expect(errors.length).toBeGreaterThan(0);
  }
});

test(covers("Responses", "cut stream", "ai + @ai-sdk/openai"), async () => {
  const cut = streamText({ ...ask("count up"), maxOutputTokens: 20 });
  await cut.consumeStream();
  expect([await cut.finishReason, (await cut.usage).outputTokens]).toEqual(["length", 20]);
});

test(covers("Responses", "long stream", "ai + @ai-sdk/openai"), async () => {
  const result = streamText(ask("count up"));
  let pieces = 0;
  for await (const _ of result.textStream) pieces++;
  expect(await result.text).toBe(LONG);
  expect(pieces).toBeGreaterThan(500);
});
