/** Responses of the compiled program, judged by `ai` with @ai-sdk/openai, whose default model asks for them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText } from "ai";
import * as aiCases from "./support/ai.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { type ResponsesServer, startResponses } from "./support/responses.ts";
import { BOTH, CITIES, HELLO, ONE, THOUGHT, YES } from "./support/scripted.ts";

let server: ResponsesServer;
let model: ReturnType<ReturnType<typeof createOpenAI>>;
beforeAll(async () => {
  server = await startResponses();
  model = createOpenAI({ baseURL: `${server.gateway.url}/v1`, apiKey: "none" })(server.model);
}, BUILD_MS);
afterAll(() => server?.stop());

const ask = (prompt: string) => ({ model, prompt, maxRetries: 0, onError() {} });

test(covers("Responses", "text", "ai + @ai-sdk/openai"), async () => {
  const { text, finishReason, usage, response } = await generateText(ask("say hello"));
  expect([text, finishReason]).toEqual([HELLO, "stop"]);
  expect(usage.outputTokens).toBeGreaterThan(5);
  expect(response.id).toStartWith("resp_");
});

test(covers("Responses", "stream", "ai + @ai-sdk/openai"), async () => {
  expect(await aiCases.streams(ask)).toBeGreaterThan(5);
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

test(covers("Responses", "reasoning that is not shown", "ai + @ai-sdk/openai"), () => aiCases.hidesReasoning(ask));

const loop = (
  prompt: string,
  asked: string[],
  openai: { store?: boolean; include?: "reasoning.encrypted_content"[] },
) => ({
  ...ask(prompt),
  tools: aiCases.weather(asked),
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

test(covers("Responses", "structured output", "ai + @ai-sdk/openai"), () => aiCases.givesObjects(ask));

test(covers("Responses", "error before the first byte", "ai + @ai-sdk/openai"), () => aiCases.refuses(ask));

test(covers("Responses", "error after it", "ai + @ai-sdk/openai"), () => aiCases.failsMidway(ask));

test(covers("Responses", "cut stream", "ai + @ai-sdk/openai"), () => aiCases.isCut(ask));

test(covers("Responses", "long stream", "ai + @ai-sdk/openai"), () => aiCases.countsUp(ask));
