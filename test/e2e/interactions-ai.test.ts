/** Interactions of the compiled program, judged by `ai` with `google.interactions(model)` of @ai-sdk/google. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createGoogle } from "@ai-sdk/google";
import { generateText, stepCountIs, streamText } from "ai";
import * as aiCases from "./support/ai.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { REMEMBERED, SLOW, startInteractions } from "./support/interactions.ts";
import { BOTH, CITIES, HELLO, type ScriptedServer, THOUGHT, YES } from "./support/scripted.ts";

let server: ScriptedServer;
let model: ReturnType<ReturnType<typeof createGoogle>["interactions"]>;
beforeAll(async () => {
  server = await startInteractions();
  model = createGoogle({ baseURL: `${server.gateway.url}/v1beta`, apiKey: "none" }).interactions(server.model);
}, BUILD_MS);
afterAll(() => server?.stop());

const ask = (prompt: string) => ({ model, prompt, maxRetries: 0, onError() {} });

test(covers("Interactions", "text", "ai + @ai-sdk/google"), async () => {
  const { text, finishReason, usage, response, providerMetadata } = await generateText(ask("say hello"));
  expect([text, finishReason]).toEqual([HELLO, "stop"]);
  expect(usage.outputTokens).toBeGreaterThan(5);
  expect(usage.totalTokens).toBe(usage.inputTokens! + usage.outputTokens!);
  expect(response.id).toStartWith("int_");
  expect(providerMetadata!["google"]).toMatchObject({ interactionId: response.id, serviceTier: "standard" });
});

test(covers("Interactions", "stream", "ai + @ai-sdk/google"), async () => {
  expect(await aiCases.streams(ask)).toBeGreaterThan(5);
});

test(covers("Interactions", "reasoning", "ai + @ai-sdk/google"), async () => {
  const whole = await generateText(ask("think first"));
  expect([whole.reasoningText?.trim(), whole.text.trim()]).toEqual([THOUGHT, YES]);
  expect(whole.usage.outputTokenDetails.reasoningTokens).toBeGreaterThan(2);
  const streamed = streamText(ask("think first"));
  let pieces = 0;
  for await (const part of streamed.fullStream) if (part.type === "reasoning-delta" && part.text !== "") pieces++;
  expect(pieces).toBeGreaterThan(1);
  expect((await streamed.reasoningText)?.trim()).toBe(THOUGHT);
  expect((await streamed.text).trim()).toBe(YES);
});

/** The second round brings the whole history: the thought counts by its signature. */
test(covers("Interactions", "one tool", "ai + @ai-sdk/google"), async () => {
  const asked: string[] = [];
  const { text, steps } = await generateText({
    ...ask("weather of Oslo"),
    tools: aiCases.weather(asked),
    stopWhen: stepCountIs(3),
  });
  expect([text, asked, steps.length]).toEqual([REMEMBERED, ["Oslo"], 2]);
  expect(steps[0]!.finishReason).toBe("tool-calls");
  expect(steps[0]!.reasoningText?.trim()).toBe("One town.");
  const streamed = streamText({ ...ask("weather of Oslo"), tools: aiCases.weather(asked), stopWhen: stepCountIs(3) });
  await streamed.consumeStream();
  expect(await streamed.text).toBe(REMEMBERED);
});

test(covers("Interactions", "parallel tools", "ai + @ai-sdk/google"), async () => {
  const asked: string[] = [];
  const tools = aiCases.weather(asked);
  const result = streamText({ ...ask("both towns"), tools, stopWhen: stepCountIs(3) });
  await result.consumeStream();
  expect([await result.text, asked]).toEqual([BOTH, CITIES]);
  expect((await generateText({ ...ask("both towns"), tools, stopWhen: stepCountIs(3) })).text).toBe(BOTH);
});

test(covers("Interactions", "structured output", "ai + @ai-sdk/google"), () => aiCases.givesObjects(ask));

test(covers("Interactions", "error before the first byte", "ai + @ai-sdk/google"), () => aiCases.refuses(ask));

test(covers("Interactions", "error after it", "ai + @ai-sdk/google"), async () => {
  const end = { errors: 1, reason: "error" };
  expect(await aiCases.failsMidway(ask)).toEqual([end, end]);
});

test(covers("Interactions", "cut stream", "ai + @ai-sdk/google"), () => aiCases.isCut(ask));

test(covers("Interactions", "long stream", "ai + @ai-sdk/google"), () => aiCases.countsUp(ask));

test(covers("Interactions", "a conversation that the server keeps", "ai + @ai-sdk/google"), async () => {
  const first = await generateText(ask("my name is Ann"));
  const google = { previousInteractionId: first.response.id };
  const second = await generateText({ ...ask("what was my name?"), providerOptions: { google } });
  expect(second.text).toBe("Ann.");
});

test(covers("Interactions", "store", "ai + @ai-sdk/google"), async () => {
  const { text, providerMetadata } = await generateText({
    ...ask("say hello"),
    providerOptions: { google: { store: false } },
  });
  expect(text).toBe(HELLO);
  expect(providerMetadata!["google"]).not.toHaveProperty("interactionId");
});

test(covers("Interactions", "background", "ai + @ai-sdk/google"), async () => {
  const asked = { ...ask("take your time"), providerOptions: { google: { background: true } } };
  const streamed = streamText(asked);
  let pieces = 0;
  for await (const _ of streamed.textStream) pieces++;
  expect(await streamed.text).toBe(SLOW);
  expect(pieces).toBeGreaterThan(2);
  const { text, finishReason } = await generateText(asked); // asks again and again until it is over
  expect([text, finishReason]).toEqual([SLOW, "stop"]);
});

test(covers("Interactions", "cancel", "ai + @ai-sdk/google"), async () => {
  const before = (await server.engine.stats()).open;
  const leaving = new AbortController();
  const result = streamText({
    ...ask("take your time"),
    providerOptions: { google: { background: true } },
    abortSignal: leaving.signal,
  });
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") leaving.abort();
  }
  for (let wait = 0; wait < 300 && (await server.engine.stats()).open > before; wait++) await Bun.sleep(10);
  expect((await server.engine.stats()).open).toBe(before);
});
