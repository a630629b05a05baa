/** Chat Completions of the compiled program, judged by the clients that speak it: openai, @openai/agents, and ai with @ai-sdk/openai. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createOpenAI } from "@ai-sdk/openai";
import { Agent, tool as agentTool, OpenAIProvider, Runner } from "@openai/agents";
import { APICallError, generateText, Output, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { user } from "./support/processes.ts";
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
beforeAll(async () => {
  server = await startResponses();
}, BUILD_MS);
afterAll(() => server?.stop());

const town = z.object({ city: z.string(), degrees: z.number() });
const place = z.object({ city: z.string() });

describe("openai", () => {
  const ask = (content: string) => ({ model: server.model, messages: user(content) });

  test(covers("Chat Completions", "text", "openai"), async () => {
    const { choices, usage } = await server.client.chat.completions.create(ask("say hello"));
    expect(choices).toMatchObject([{ message: { role: "assistant", content: HELLO }, finish_reason: "stop" }]);
    expect(usage!.total_tokens).toBe(usage!.prompt_tokens + usage!.completion_tokens);
  });

  test(covers("Chat Completions", "stream", "openai"), async () => {
    const stream = server.client.chat.completions.stream(ask("say hello"));
    let text = "";
    stream.on("content", (delta) => {
      text += delta;
    });
    const final = await stream.finalChatCompletion();
    expect([text, final.choices[0]!.message.content]).toEqual([HELLO, HELLO]);
  });

  /** The client's types have no place for it, but it passes it on. */
  test(covers("Chat Completions", "reasoning", "openai"), async () => {
    type Reasoned = { content: string | null; reasoning_content?: string };
    const whole = await server.client.chat.completions.create(ask("think first"));
    const message = whole.choices[0]!.message as Reasoned;
    expect([message.reasoning_content?.trim(), message.content?.trim()]).toEqual([THOUGHT, YES]);
    let [thought, text] = ["", ""];
    for await (const { choices } of await server.client.chat.completions.create({
      ...ask("think first"),
      stream: true,
    })) {
      const delta = choices[0]?.delta as Reasoned | undefined;
      thought += delta?.reasoning_content ?? "";
      text += delta?.content ?? "";
    }
    expect([thought.trim(), text.trim()]).toEqual([THOUGHT, YES]);
  });

  /** Runs a tool with the client's runner, whole and streamed. */
  async function loop(content: string, cities: readonly string[], answer: string): Promise<void> {
    for (const stream of [false, true]) {
      const asked: string[] = [];
      const weather = {
        type: "function" as const,
        function: {
          name: "get_weather",
          description: "Tells the weather",
          parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
          parse: (text: string) => place.parse(JSON.parse(text)),
          function: ({ city }: z.infer<typeof place>) => {
            asked.push(city);
            return degrees(city);
          },
        },
      };
      const body = { ...ask(content), tools: [weather] };
      const runner = stream
        ? server.client.chat.completions.runTools({ ...body, stream })
        : server.client.chat.completions.runTools(body);
      expect([await runner.finalContent(), asked]).toEqual([answer, [...cities]]);
    }
  }
  test(covers("Chat Completions", "one tool", "openai"), () => loop("weather of Oslo", ["Oslo"], ONE));
  test(covers("Chat Completions", "parallel tools", "openai"), () => loop("both towns", CITIES, BOTH));

  test(covers("Chat Completions", "structured output", "openai"), async () => {
    const body = { ...ask("say JSON"), response_format: zodResponseFormat(town, "town") };
    const whole = await server.client.chat.completions.parse(body);
    expect(whole.choices[0]!.message.parsed).toEqual({ city: "Oslo", degrees: 4 });
    const streamed = await server.client.chat.completions.stream(body).finalChatCompletion();
    expect(streamed.choices[0]!.message.parsed).toEqual({ city: "Oslo", degrees: 4 });
  });

  test(covers("Chat Completions", "error before the first byte", "openai"), async () => {
    for (const stream of [false, true]) {
      const failed = failureOf(server.client.chat.completions.create({ ...ask("refuse"), stream }));
      expect(await failed).toBeInstanceOf(OpenAI.InternalServerError);
      const busy = failureOf(server.client.chat.completions.create({ ...ask("refuse busy"), stream }));
      expect(await busy).toBeInstanceOf(OpenAI.RateLimitError);
      const unknown = failureOf(server.client.chat.completions.create({ ...ask("a"), model: "nope", stream }));
      expect(await unknown).toBeInstanceOf(OpenAI.NotFoundError);
      const long = { ...ask("a"), max_tokens: 1_000_000_000, stream };
      expect(await failureOf(server.client.chat.completions.create(long))).toMatchObject({
        status: 400,
        code: "context_length_exceeded",
        param: "messages",
        requestID: expect.any(String),
      });
    }
  });

  test(covers("Chat Completions", "error after it", "openai"), async () => {
    for (const content of ["fail midway", "cut midway"]) {
      let text = "";
      const reading = async () => {
        const stream = await server.client.chat.completions.create({ ...ask(content), stream: true });
        for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
      };
      expect(await failureOf(reading())).toBeInstanceOf(OpenAI.APIError);
      expect(text).toStartWith("alpha");
    }
  });

  test(covers("Chat Completions", "cut stream", "openai"), async () => {
    const cut = await server.client.chat.completions
      .stream({ ...ask("count up"), max_tokens: 20 })
      .finalChatCompletion();
    expect(cut.choices[0]!.finish_reason).toBe("length");
    expect(LONG).toStartWith(cut.choices[0]!.message.content!);
  });

  test(covers("Chat Completions", "long stream", "openai"), async () => {
    const stream = server.client.chat.completions.stream(ask("count up"));
    expect(await stream.finalContent()).toBe(LONG);
  });
});

describe("@openai/agents", () => {
  let runner: Runner;
  beforeAll(() => {
    const modelProvider = new OpenAIProvider({ openAIClient: server.client as never, useResponses: false });
    runner = new Runner({ modelProvider, tracingDisabled: true });
  });
  const agent = (more: object = {}) =>
    new Agent({ name: "Tester", instructions: "Be brief.", model: server.model, ...more });

  test(covers("Chat Completions", "text", "@openai/agents"), async () => {
    const result = await runner.run(agent(), "say hello");
    expect(result.finalOutput).toBe(HELLO);
    expect(result.rawResponses[0]!.usage.outputTokens).toBeGreaterThan(5);
  });

  test(covers("Chat Completions", "stream", "@openai/agents"), async () => {
    const result = await runner.run(agent(), "say hello", { stream: true });
    let text = "";
    for await (const event of result)
      if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") text += event.data.delta;
    await result.completed;
    expect([text, result.finalOutput]).toEqual([HELLO, HELLO]);
  });

  test(covers("Chat Completions", "reasoning that is not shown", "@openai/agents"), async () => {
    for (const stream of [false, true]) {
      const result = stream
        ? await runner.run(agent(), "think first", { stream })
        : await runner.run(agent(), "think first");
      if ("completed" in result) await result.completed;
      expect(result.finalOutput?.trim()).toBe(YES);
    }
  });

  async function goBothWays(input: string, cities: readonly string[], answer: string): Promise<void> {
    for (const stream of [false, true]) {
      const asked: string[] = [];
      const weather = agentTool({
        name: "get_weather",
        description: "Tells the weather",
        parameters: place,
        execute: ({ city }) => {
          asked.push(city);
          return degrees(city);
        },
      });
      const one = agent({ tools: [weather] });
      const result = stream ? await runner.run(one, input, { stream }) : await runner.run(one, input);
      if ("completed" in result) await result.completed;
      expect([result.finalOutput, asked]).toEqual([answer, [...cities]]);
    }
  }
  test(covers("Chat Completions", "one tool", "@openai/agents"), () => goBothWays("weather of Oslo", ["Oslo"], ONE));
  test(covers("Chat Completions", "parallel tools", "@openai/agents"), () => goBothWays("both towns", CITIES, BOTH));

  test(covers("Chat Completions", "structured output", "@openai/agents"), async () => {
    const result = await runner.run(agent({ outputType: town }), "say JSON");
    expect(result.finalOutput as unknown).toEqual(JSON.parse(degrees("Oslo")));
  });

  test(covers("Chat Completions", "error before the first byte", "@openai/agents"), async () => {
    expect(await failureOf(runner.run(agent(), "refuse"))).toBeInstanceOf(OpenAI.InternalServerError);
    expect(await failureOf(runner.run(agent(), "refuse busy"))).toBeInstanceOf(OpenAI.RateLimitError);
  });

  test(covers("Chat Completions", "error after it", "@openai/agents"), async () => {
    for (const input of ["fail midway", "cut midway"]) {
      const result = await runner.run(agent(), input, { stream: true });
      expect(await failureOf(result.completed)).toBeInstanceOf(OpenAI.APIError);
    }
  });

  test(covers("Chat Completions", "cut stream", "@openai/agents"), async () => {
    const result = await runner.run(agent({ modelSettings: { maxTokens: 20 } }), "count up", { stream: true });
    await result.completed;
    expect(LONG).toStartWith(String(result.finalOutput));
    expect(result.rawResponses[0]!.usage.outputTokens).toBe(20);
  });

  test(covers("Chat Completions", "long stream", "@openai/agents"), async () => {
    const result = await runner.run(agent(), "count up", { stream: true });
    await result.completed;
    expect(result.finalOutput).toBe(LONG);
  });
});

describe("ai + @ai-sdk/openai", () => {
  let model: ReturnType<ReturnType<typeof createOpenAI>["chat"]>;
  beforeAll(() => {
    model = createOpenAI({ baseURL: `${server.gateway.url}/v1`, apiKey: "none" }).chat(server.model);
  });
  const ask = (prompt: string) => ({ model, prompt, maxRetries: 0, onError() {} });
  const weather = (asked: string[]) => ({
    get_weather: tool({
      description: "Tells the weather",
      inputSchema: place,
      execute: ({ city }) => {
        asked.push(city);
        return { city, degrees: 4 };
      },
    }),
  });

  test(covers("Chat Completions", "text", "ai + @ai-sdk/openai"), async () => {
    const { text, finishReason, usage } = await generateText(ask("say hello"));
    expect([text, finishReason]).toEqual([HELLO, "stop"]);
    expect(usage.outputTokens).toBeGreaterThan(5);
  });

  test(covers("Chat Completions", "stream", "ai + @ai-sdk/openai"), async () => {
    const result = streamText(ask("say hello"));
    let text = "";
    for await (const piece of result.textStream) text += piece;
    expect([text, await result.finishReason]).toEqual([HELLO, "stop"]);
  });

  /** This client knows no reasoning of Chat Completions: it must not be in its way. */
  test(covers("Chat Completions", "reasoning that is not shown", "ai + @ai-sdk/openai"), async () => {
    const { text, usage } = await generateText(ask("think first"));
    expect(text.trim()).toBe(YES);
    expect(usage.outputTokenDetails.reasoningTokens).toBeGreaterThan(0);
  });

  test(covers("Chat Completions", "one tool", "ai + @ai-sdk/openai"), async () => {
    const asked: string[] = [];
    const body = { ...ask("weather of Oslo"), tools: weather(asked), stopWhen: stepCountIs(3) };
    const { text, steps } = await generateText(body);
    expect([text, asked, steps.length]).toEqual([ONE, ["Oslo"], 2]);
    expect(steps[0]!.finishReason).toBe("tool-calls");
  });

  test(covers("Chat Completions", "parallel tools", "ai + @ai-sdk/openai"), async () => {
    const asked: string[] = [];
    const result = streamText({ ...ask("both towns"), tools: weather(asked), stopWhen: stepCountIs(3) });
    await result.consumeStream();
    expect([await result.text, asked]).toEqual([BOTH, CITIES]);
  });

  test(covers("Chat Completions", "structured output", "ai + @ai-sdk/openai"), async () => {
    const { output } = await generateText({ ...ask("say JSON"), output: Output.object({ schema: town }) });
    expect(output).toEqual(JSON.parse(degrees("Oslo")));
    const streamed = streamText({ ...ask("say JSON"), output: Output.object({ schema: town }) });
    await streamed.consumeStream();
    expect(await streamed.output).toEqual(JSON.parse(degrees("Oslo")));
  });

  test(covers("Chat Completions", "error before the first byte", "ai + @ai-sdk/openai"), async () => {
    const error = await failureOf(generateText(ask("refuse")));
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ statusCode: 500, message: "boom", isRetryable: true });
    expect(await failureOf(generateText(ask("refuse busy")))).toMatchObject({ statusCode: 429, isRetryable: true });
  });

  test(covers("Chat Completions", "error after it", "ai + @ai-sdk/openai"), async () => {
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

  test(covers("Chat Completions", "cut stream", "ai + @ai-sdk/openai"), async () => {
    const cut = streamText({ ...ask("count up"), maxOutputTokens: 20 });
    await cut.consumeStream();
    expect([await cut.finishReason, (await cut.usage).outputTokens]).toEqual(["length", 20]);
  });

  test(covers("Chat Completions", "long stream", "ai + @ai-sdk/openai"), async () => {
    const result = streamText(ask("count up"));
    let pieces = 0;
    for await (const _ of result.textStream) pieces++;
    expect(await result.text).toBe(LONG);
    expect(pieces).toBeGreaterThan(500);
  });
});
