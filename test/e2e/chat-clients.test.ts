/** Chat Completions of the compiled program, judged by the clients that speak it: openai, @openai/agents, and ai with @ai-sdk/openai. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText } from "ai";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import * as agentCases from "./support/agents.ts";
import * as aiCases from "./support/ai.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { user } from "./support/processes.ts";
import { type ResponsesServer, startResponses } from "./support/responses.ts";
import { BOTH, CITIES, degrees, failureOf, HELLO, LONG, ONE, THOUGHT, YES } from "./support/scripted.ts";

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
  let agents: agentCases.Agents;
  beforeAll(() => {
    agents = agentCases.agentsOf(server.client, server.model, false);
  });

  test(covers("Chat Completions", "text", "@openai/agents"), () => agentCases.answers(agents));

  test(covers("Chat Completions", "stream", "@openai/agents"), () => agentCases.streams(agents));

  test(covers("Chat Completions", "reasoning that is not shown", "@openai/agents"), async () => {
    for (const stream of [false, true]) {
      const result = await agentCases.runTo(agents, agents.agent(), "think first", stream);
      expect(result.finalOutput?.trim()).toBe(YES);
    }
  });

  test(covers("Chat Completions", "one tool", "@openai/agents"), () =>
    agentCases.callsTools(agents, "weather of Oslo", ["Oslo"], ONE),
  );
  test(covers("Chat Completions", "parallel tools", "@openai/agents"), () =>
    agentCases.callsTools(agents, "both towns", CITIES, BOTH),
  );

  test(covers("Chat Completions", "structured output", "@openai/agents"), () => agentCases.givesObjects(agents));

  test(covers("Chat Completions", "error before the first byte", "@openai/agents"), () => agentCases.refuses(agents));

  test(covers("Chat Completions", "error after it", "@openai/agents"), () => agentCases.failsMidway(agents));

  test(covers("Chat Completions", "cut stream", "@openai/agents"), async () => {
    const result = await agents.runner.run(agents.agent({ modelSettings: { maxTokens: 20 } }), "count up", {
      stream: true,
    });
    await result.completed;
    expect(LONG).toStartWith(String(result.finalOutput));
    expect(result.rawResponses[0]!.usage.outputTokens).toBe(20);
  });

  test(covers("Chat Completions", "long stream", "@openai/agents"), () => agentCases.countsUp(agents));
});

describe("ai + @ai-sdk/openai", () => {
  let model: ReturnType<ReturnType<typeof createOpenAI>["chat"]>;
  beforeAll(() => {
    model = createOpenAI({ baseURL: `${server.gateway.url}/v1`, apiKey: "none" }).chat(server.model);
  });
  const ask = (prompt: string) => ({ model, prompt, maxRetries: 0, onError() {} });

  test(covers("Chat Completions", "text", "ai + @ai-sdk/openai"), async () => {
    const { text, finishReason, usage } = await generateText(ask("say hello"));
    expect([text, finishReason]).toEqual([HELLO, "stop"]);
    expect(usage.outputTokens).toBeGreaterThan(5);
  });

  test(covers("Chat Completions", "stream", "ai + @ai-sdk/openai"), () => aiCases.streams(ask));

  /** This client knows no reasoning of Chat Completions: it must not be in its way. */
  test(covers("Chat Completions", "reasoning that is not shown", "ai + @ai-sdk/openai"), () =>
    aiCases.hidesReasoning(ask),
  );

  test(covers("Chat Completions", "one tool", "ai + @ai-sdk/openai"), async () => {
    const asked: string[] = [];
    const body = { ...ask("weather of Oslo"), tools: aiCases.weather(asked), stopWhen: stepCountIs(3) };
    const { text, steps } = await generateText(body);
    expect([text, asked, steps.length]).toEqual([ONE, ["Oslo"], 2]);
    expect(steps[0]!.finishReason).toBe("tool-calls");
  });

  test(covers("Chat Completions", "parallel tools", "ai + @ai-sdk/openai"), async () => {
    const asked: string[] = [];
    const result = streamText({ ...ask("both towns"), tools: aiCases.weather(asked), stopWhen: stepCountIs(3) });
    await result.consumeStream();
    expect([await result.text, asked]).toEqual([BOTH, CITIES]);
  });

  test(covers("Chat Completions", "structured output", "ai + @ai-sdk/openai"), () => aiCases.givesObjects(ask));

  test(covers("Chat Completions", "error before the first byte", "ai + @ai-sdk/openai"), () => aiCases.refuses(ask));

  test(covers("Chat Completions", "error after it", "ai + @ai-sdk/openai"), () => aiCases.failsMidway(ask));

  test(covers("Chat Completions", "cut stream", "ai + @ai-sdk/openai"), () => aiCases.isCut(ask));

  test(covers("Chat Completions", "long stream", "ai + @ai-sdk/openai"), () => aiCases.countsUp(ask));
});
