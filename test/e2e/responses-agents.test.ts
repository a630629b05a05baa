/** Responses of the compiled program, judged by @openai/agents. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Agent, ModelBehaviorError, OpenAIProvider, Runner, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { BUILD_MS } from "./support/binary.ts";
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

test("Responses | text | agents", async () => {
  const result = await runner.run(agent(), "say hello");
  expect(result.finalOutput).toBe(HELLO);
  expect(result.rawResponses[0]!.usage.outputTokens).toBeGreaterThan(5);
});

test("Responses | stream | agents", async () => {
  const result = await runner.run(agent(), "say hello", { stream: true });
  let text = "";
  for await (const event of result)
    if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") text += event.data.delta;
  await result.completed;
  expect([text, result.finalOutput]).toEqual([HELLO, HELLO]);
});

test("Responses | reasoning | agents", async () => {
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

describe.each([false, true])("tools, streamed %p", (stream) => {
  const go = async (input: string, asked: string[], more: object = {}) => {
    const one = agent({ tools: [weather(asked)], ...more });
    if (!stream) return runner.run(one, input);
    const result = await runner.run(one, input, { stream: true });
    await result.completed;
    return result;
  };
  const told = stream ? ", streamed" : "";

  test(`Responses | one tool | agents${told}`, async () => {
    const asked: string[] = [];
    const result = await go("weather of Oslo", asked);
    expect([result.finalOutput, asked]).toEqual([ONE, ["Oslo"]]);
  });

  test(`Responses | parallel tools | agents${told}`, async () => {
    const asked: string[] = [];
    const result = await go("both towns", asked);
    expect([result.finalOutput, asked]).toEqual([BOTH, CITIES]);
  });

  test(`Responses | stateless tools | agents${told}`, async () => {
    const asked: string[] = [];
    const modelSettings = { store: false, providerData: { include: ["reasoning.encrypted_content"] } };
    const result = await go("weather of Oslo", asked, { modelSettings });
    expect([result.finalOutput, asked]).toEqual([ONE, ["Oslo"]]);
  });
});

test("Responses | structured output | agents", async () => {
  const outputType = z.object({ city: z.string(), degrees: z.number() });
  const result = await runner.run(agent({ outputType }), "say JSON");
  expect(result.finalOutput as unknown).toEqual(JSON.parse(degrees("Oslo")));
});

test("Responses | error before the first byte | agents", async () => {
  expect(await failureOf(runner.run(agent(), "refuse"))).toBeInstanceOf(OpenAI.InternalServerError);
  expect(await failureOf(runner.run(agent(), "refuse busy"))).toBeInstanceOf(OpenAI.RateLimitError);
});

test("Responses | error after the first byte | agents", async () => {
  for (const input of ["fail midway", "cut midway"]) {
    const result = await runner.run(agent(), input, { stream: true });
    expect(await failureOf(result.completed)).toBeInstanceOf(OpenAI.APIError);
  }
});

/** An answer that is cut is no answer for an agent. */
test("Responses | cut stream | agents", async () => {
  const result = await runner.run(agent({ modelSettings: { maxTokens: 20 } }), "count up", { stream: true });
  const error = await failureOf(result.completed);
  expect(error).toBeInstanceOf(ModelBehaviorError);
  expect((error as Error).message).toContain("response.incomplete");
});

test("Responses | long stream | agents", async () => {
  const result = await runner.run(agent(), "count up", { stream: true });
  await result.completed;
  expect(result.finalOutput).toBe(LONG);
});
