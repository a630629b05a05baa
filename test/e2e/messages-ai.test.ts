/** Messages of the compiled program, judged by `ai` with @ai-sdk/anthropic. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { APICallError, generateText, Output, stepCountIs, streamText } from "ai";
import * as aiCases from "./support/ai.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { type MessagesServer, startMessages } from "./support/messages.ts";
import { eventually } from "./support/processes.ts";
import { BOTH, CITIES, failureOf, HELLO, LONG, ONE, THOUGHT, YES } from "./support/scripted.ts";

let server: MessagesServer;
let model: ReturnType<ReturnType<typeof createAnthropic>>;
beforeAll(async () => {
  server = await startMessages();
  model = createAnthropic({ baseURL: `${server.gateway.url}/v1`, apiKey: "none" })(server.model);
}, BUILD_MS);
afterAll(() => server?.stop());

const ask = (prompt: string) => ({ model, prompt, maxRetries: 0, maxOutputTokens: 20_000, onError() {} });
const THINK = { anthropic: { thinking: { type: "adaptive" as const } } };

test(covers("Messages", "text", "ai + @ai-sdk/anthropic"), async () => {
  const { text, finishReason, usage, response } = await generateText(ask("say hello"));
  expect([text, finishReason]).toEqual([HELLO, "stop"]);
  expect(usage.outputTokens).toBeGreaterThan(5);
  expect(response.id).toStartWith("msg_");
});

test(covers("Messages", "stream", "ai + @ai-sdk/anthropic"), async () => {
  expect(await aiCases.streams(ask)).toBeGreaterThan(5);
});

test(covers("Messages", "reasoning", "ai + @ai-sdk/anthropic"), async () => {
  const whole = await generateText({ ...ask("think first"), providerOptions: THINK });
  expect([whole.reasoningText?.trim(), whole.text.trim()]).toEqual([THOUGHT, YES]);
  const streamed = streamText({ ...ask("think first"), providerOptions: THINK });
  await streamed.consumeStream();
  expect([(await streamed.reasoningText)?.trim(), (await streamed.text).trim()]).toEqual([THOUGHT, YES]);
  const asked: string[] = [];
  const loop = await generateText({
    ...ask("think of Oslo"),
    tools: aiCases.weather(asked),
    stopWhen: stepCountIs(3),
    providerOptions: THINK,
  });
  expect([asked, loop.text]).toEqual([["Oslo"], `${ONE} I thought so.`]);
});

async function tools(prompt: string): Promise<{ asked: string[]; text: string }[]> {
  const [whole, streamed]: [string[], string[]] = [[], []];
  const one = await generateText({ ...ask(prompt), tools: aiCases.weather(whole), stopWhen: stepCountIs(3) });
  const other = streamText({ ...ask(prompt), tools: aiCases.weather(streamed), stopWhen: stepCountIs(3) });
  await other.consumeStream();
  return [
    { asked: whole, text: one.text },
    { asked: streamed, text: await other.text },
  ];
}

test(covers("Messages", "one tool", "ai + @ai-sdk/anthropic"), async () => {
  const wanted = { asked: ["Oslo"], text: ONE };
  expect(await tools("weather of Oslo")).toEqual([wanted, wanted]);
});

test(covers("Messages", "parallel tools", "ai + @ai-sdk/anthropic"), async () => {
  const wanted = { asked: CITIES, text: BOTH };
  expect(await tools("both towns")).toEqual([wanted, wanted]);
});

test(covers("Messages", "structured output", "ai + @ai-sdk/anthropic"), async () => {
  const providerOptions = { anthropic: { structuredOutputMode: "outputFormat" as const } };
  const { output } = await generateText({
    ...ask("say JSON"),
    output: Output.object({ schema: aiCases.town }),
    providerOptions,
  });
  expect(output).toEqual({ city: "Oslo", degrees: 4 });
  // of models that it does not know it asks for a call of a tool instead
  const called = await generateText({ ...ask("weather"), output: Output.object({ schema: aiCases.town }) });
  expect(Object.keys(called.output).sort()).toEqual(["city", "degrees"]);
});

test(covers("Messages", "error before the first byte", "ai + @ai-sdk/anthropic"), async () => {
  const busy = (await failureOf(generateText(ask("refuse busy")))) as APICallError;
  expect([APICallError.isInstance(busy), busy.statusCode, busy.isRetryable]).toEqual([true, 529, true]);
  const errors: unknown[] = [];
  const streamed = streamText({ ...ask("refuse this"), onError: ({ error }) => void errors.push(error) });
  await streamed.consumeStream();
  expect((errors[0] as APICallError).statusCode).toBe(500);
});

async function failing(prompt: string): Promise<{ text: string; errors: unknown[] }> {
  const errors: unknown[] = [];
  let text = "";
  const result = streamText({ ...ask(prompt), onError: ({ error }) => void errors.push(error) });
  for await (const part of result.fullStream) if (part.type === "text-delta") text += part.text;
  return { text, errors };
}

test(covers("Messages", "error after it", "ai + @ai-sdk/anthropic"), async () => {
  const { text, errors } = await failing("fail midway");
  expect(text).toStartWith("alpha");
  expect(errors).toHaveLength(1);
});

test(covers("Messages", "cut stream", "ai + @ai-sdk/anthropic"), async () => {
  expect((await failing("cut midway")).errors).toHaveLength(1);
  const before = (await server.engine.stats()).open;
  const controller = new AbortController();
  const result = streamText({ ...ask("hold on"), abortSignal: controller.signal });
  setTimeout(() => controller.abort(), 300);
  await result.consumeStream();
  await eventually(async () => (await server.engine.stats()).open === before);
});

test(covers("Messages", "long stream", "ai + @ai-sdk/anthropic"), async () => {
  const result = streamText(ask("count up"));
  await result.consumeStream();
  expect(await result.text).toBe(LONG);
});
