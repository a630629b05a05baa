/** Responses of the compiled program, judged by @openai/agents. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Agent, ModelBehaviorError, OpenAIProvider, Runner, tool } from "@openai/agents";
import OpenAI from "openai";
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
let runner: Runner;
beforeAll(async () => {
  server = await startResponses();
  const modelProvider = new OpenAIProvider({ openAIClient: server.client as never, useResponses: true });
  runner = new Runner({ modelProvider, tracingDisabled: true });
}, BUILD_MS);
afterAll(() => server?.stop());

const agent = (more: object = {}) =>
  new Agent({ name: "Tester", instructions: "Be brief.", model: server.model, ...more });

const weather = (asked: string[]) =>
  tool({
    name: "get_weather",
    description: "Tells the weather",
    parameters: z.object({ city: z.string() }),
    execute: ({ city }) => {
      asked.push(city);
      return degrees(city);
    },
  });

test(covers("Responses", "text", "@openai/agents"), async () => {
  const result = await runner.run(agent(), "say hello");
  expect(result.finalOutput).toBe(HELLO);
  expect(result.rawResponses[0]!.usage.outputTokens).toBeGreaterThan(5);
});

test(covers("Responses", "stream", "@openai/agents"), async () => {
  const result = await runner.run(agent(), "say hello", { stream: true });
  let text = "";
  for await (const event of result)
    if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") text += event.data.delta;
  await result.completed;
  expect([text, result.finalOutput]).toEqual([HELLO, HELLO]);
});

test(covers("Responses", "reasoning", "@openai/agents"), async () => {
  const modelSettings = { reasoning: { summary: "auto" } };
  for (const stream of [false, true]) {
    const result = stream
      ? await runner.run(agent({ modelSettings }), "think first", { stream })
      : await runner.run(agent({ modelSettings }), "think first");
    if ("completed" in result) await result.completed;
    expect(result.finalOutput?.trim()).toBe(YES);
    const thought = result.newItems.find(({ type }) => type === "reasoning_item");
    expect(JSON.stringify(thought?.rawItem)).toContain(THOUGHT);
  }
});

/** Runs an agent with a tool to its end, whole and streamed. */
async function goBothWays(input: string, cities: readonly string[], answer: string, more: object = {}): Promise<void> {
  for (const stream of [false, true]) {
    const asked: string[] = [];
    const one = agent({ tools: [weather(asked)], ...more });
    const result = stream ? await runner.run(one, input, { stream }) : await runner.run(one, input);
    if ("completed" in result) await result.completed;
    expect([result.finalOutput, asked]).toEqual([answer, [...cities]]);
  }
}

test(covers("Responses", "one tool", "@openai/agents"), () => goBothWays("weather of Oslo", ["Oslo"], ONE));
test(covers("Responses", "parallel tools", "@openai/agents"), () => goBothWays("both towns", CITIES, BOTH));
test(covers("Responses", "tools without store", "@openai/agents"), () => {
  const modelSettings = { store: false, providerData: { include: ["reasoning.encrypted_content"] } };
  return goBothWays("weather of Oslo", ["Oslo"], ONE, { modelSettings });
});

test(covers("Responses", "structured output", "@openai/agents"), async () => {
  const outputType = z.object({ city: z.string(), degrees: z.number() });
  const result = await runner.run(agent({ outputType }), "say JSON");
  expect(result.finalOutput as unknown).toEqual(JSON.parse(degrees("Oslo")));
});

test(covers("Responses", "error before the first byte", "@openai/agents"), async () => {
  expect(await failureOf(runner.run(agent(), "refuse"))).toBeInstanceOf(OpenAI.InternalServerError);
  expect(await failureOf(runner.run(agent(), "refuse busy"))).toBeInstanceOf(OpenAI.RateLimitError);
});

test(covers("Responses", "error after it", "@openai/agents"), async () => {
  for (const input of ["fail midway", "cut midway"]) {
    const result = await runner.run(agent(), input, { stream: true });
    expect(await failureOf(result.completed)).toBeInstanceOf(OpenAI.APIError);
  }
});

/** An answer that is cut is no answer for an agent. */
test(covers("Responses", "cut stream", "@openai/agents"), async () => {
  const result = await runner.run(agent({ modelSettings: { maxTokens: 20 } }), "count up", { stream: true });
  const error = await failureOf(result.completed);
  expect(error).toBeInstanceOf(ModelBehaviorError);
  expect((error as Error).message).toContain("response.incomplete");
});

test(covers("Responses", "long stream", "@openai/agents"), async () => {
  const result = await runner.run(agent(), "count up", { stream: true });
  await result.completed;
  expect(result.finalOutput).toBe(LONG);
});
