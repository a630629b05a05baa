/** Responses of the compiled program, judged by the helpers of the openai package. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { checkResponse, type ResponseEvent } from "../support/schemas/responses.ts";
import { checkEvents } from "../support/schemas/responses-order.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { CODE, type ResponsesServer, startResponses } from "./support/responses.ts";
import { BOTH, CITIES, degrees, failureOf, HELLO, LONG, ONE, THOUGHT, YES } from "./support/scripted.ts";

let server: ResponsesServer;
let client: OpenAI;
let model: string;
beforeAll(async () => {
  server = await startResponses();
  ({ client, model } = server);
}, BUILD_MS);
afterAll(() => server?.stop());

type Body = OpenAI.Responses.ResponseCreateParamsNonStreaming;

const weather = {
  type: "function" as const,
  name: "get_weather",
  description: "Tells the weather",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
  strict: true,
};

/** The object as it came, without what the client adds. */
function checked(response: OpenAI.Responses.Response): void {
  const added = ["output_text", "output_parsed", "_request_id", "parsed", "parsed_arguments"];
  const { usage, ...sent } = response;
  checkResponse(
    JSON.parse(JSON.stringify({ ...sent, usage }, (key, value: unknown) => (added.includes(key) ? undefined : value))),
  );
}

/** An answer through the stream helper, with each event checked. */
async function helped(body: Body): Promise<{ final: OpenAI.Responses.Response; text: string; types: string[] }> {
  const stream = client.responses.stream(body as Parameters<typeof client.responses.stream>[0]);
  const events: ResponseEvent[] = [];
  let text = "";
  stream.on("event", (event) => void events.push(JSON.parse(JSON.stringify(event)) as ResponseEvent));
  stream.on("response.output_text.delta", ({ delta }) => {
    text += delta;
  });
  const final = await stream.finalResponse();
  checkEvents(events.map(({ snapshot: _, ...event }) => event as unknown as ResponseEvent));
  return { final, text, types: events.map(({ type }) => type) };
}

const bare = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, member: unknown) =>
      ["created_at", "completed_at", "_request_id", "cached_tokens"].includes(key) ? undefined : member,
    )
      .replaceAll(/"(resp|rs|msg|fc|ctc)_[0-9a-f]{50}"/g, '"$1"')
      .replaceAll(/"call_[0-9a-f]{24}"/g, '"call"'),
  );

/** Whole and through the stream helper: the same answer. */
async function both(body: Body): Promise<OpenAI.Responses.Response> {
  const whole = await client.responses.create(body);
  checked(whole);
  const { final } = await helped(body);
  expect(bare(final)).toMatchObject(bare(whole) as object);
  return final;
}

test(covers("Responses", "text", "openai"), async () => {
  const answer = await both({ model, input: "say hello" });
  expect(answer.output_text).toBe(HELLO);
  expect(answer).toMatchObject({ status: "completed", model, usage: { input_tokens_details: { cached_tokens: 0 } } });
});

test(covers("Responses", "stream", "openai"), async () => {
  const { final, text, types } = await helped({ model, input: "say hello", instructions: "Be kind." });
  expect([final.output_text, text]).toEqual([HELLO, HELLO]);
  expect(types[0]).toBe("response.created");
  const raw = await client.responses.create({ model, input: "say hello", stream: true });
  const events: unknown[] = [];
  for await (const event of raw) events.push(event);
  expect(checkEvents(events as ResponseEvent[])).toMatchObject({ status: "completed" });
});

describe("reasoning", () => {
  test(covers("Responses", "reasoning", "openai"), async () => {
    const answer = await both({ model, input: "think first" });
    expect(answer.output).toMatchObject([
      { type: "reasoning", summary: [], content: [{ text: `\n${THOUGHT}\n` }] },
      { type: "message" },
    ]);
    expect(answer.output_text.trim()).toBe(YES);
    expect(answer.usage!.output_tokens_details.reasoning_tokens).toBeGreaterThan(0);
  });

  test(covers("Responses", "reasoning summary and encrypted content", "openai"), async () => {
    const body: Body = {
      model,
      input: "think first",
      store: false,
      include: ["reasoning.encrypted_content"],
      reasoning: { summary: "auto" },
    };
    const { final } = await helped(body);
    const [thought] = final.output;
    expect(thought).toMatchObject({ type: "reasoning", summary: [{ type: "summary_text", text: `\n${THOUGHT}\n` }] });
    expect((thought as OpenAI.Responses.ResponseReasoningItem).encrypted_content).toStartWith("e1.");
  });
});

describe("tools", () => {
  test(covers("Responses", "one tool", "openai"), async () => {
    const body: Body = { model, input: "weather of Oslo", tools: [weather] };
    const answer = await both(body);
    const call = answer.output.find((item) => item.type === "function_call")!;
    expect(call).toMatchObject({ name: "get_weather", status: "completed" });
    expect(call.id).not.toBe(call.call_id);
    const next = await both({
      ...body,
      store: false,
      input: [
        { role: "user", content: "weather of Oslo" },
        ...(answer.output as OpenAI.Responses.ResponseInputItem[]),
        { type: "function_call_output", call_id: call.call_id, output: degrees("Oslo") },
      ],
    });
    expect(next.output_text).toBe(ONE);
  });

  test(covers("Responses", "parallel tools", "openai"), async () => {
    const { final, types } = await helped({ model, input: "both towns", tools: [weather] });
    const calls = final.output.filter((item) => item.type === "function_call");
    expect(calls.map((call) => JSON.parse(call.arguments))).toEqual(CITIES.map((city) => ({ city })));
    expect(types.filter((type) => type === "response.function_call_arguments.done")).toHaveLength(2);
    const results = calls.toReversed().map((call) => {
      const { city } = JSON.parse(call.arguments) as { city: string };
      return { type: "function_call_output" as const, call_id: call.call_id, output: degrees(city) };
    });
    const next = await both({ model, previous_response_id: final.id, input: results, tools: [weather] });
    expect(next.output_text).toBe(BOTH);
  });

  test(covers("Responses", "custom tools", "openai"), async () => {
    const tools: OpenAI.Responses.Tool[] = [{ type: "custom", name: "run_code", description: "Runs Python" }];
    const answer = await both({ model, input: "say hi in Python", tools });
    const [call] = answer.output as [OpenAI.Responses.ResponseCustomToolCall];
    expect(call).toMatchObject({ type: "custom_tool_call", name: "run_code", input: CODE });
    const output = { type: "custom_tool_call_output" as const, call_id: call.call_id, output: "printed hi" };
    const next = await both({ model, tools, input: [{ role: "user", content: "say hi in Python" }, call, output] });
    expect(next.output_text).toBe("It printed hi.");
  });

  test(covers("Responses", "namespaces and hosted tools", "openai"), async () => {
    const send = { type: "function" as const, name: "send", parameters: { type: "object" }, strict: false };
    const tools: OpenAI.Responses.Tool[] = [
      { type: "web_search" },
      { type: "namespace", name: "mail", description: "Mail", tools: [send] },
    ];
    const answer = await both({ model, input: "send a mail", tools });
    expect(answer.output).toMatchObject([
      { type: "function_call", name: "send", namespace: "mail", arguments: '{"to":"ann"}' },
    ]);
  });
});

test(covers("Responses", "structured output", "openai"), async () => {
  const format = zodTextFormat(z.object({ city: z.string(), degrees: z.number() }), "weather");
  const parsed = await client.responses.parse({ model, input: "say JSON", text: { format } });
  checked(parsed);
  expect(parsed.output_parsed).toEqual({ city: "Oslo", degrees: 4 });
  const stream = client.responses.stream({ model, input: "say JSON", text: { format } });
  expect((await stream.finalResponse()).output_parsed).toEqual({ city: "Oslo", degrees: 4 });
  const sent = (await server.engine.requests()).at(-1)!.sampling;
  expect(JSON.stringify(sent)).toContain("degrees");
  const tools = [{ ...weather }];
  const calls = await client.responses.parse({ model, input: "weather of Oslo", tools });
  expect(calls.output.find((item) => item.type === "function_call")).toMatchObject({
    parsed_arguments: { city: "Oslo" },
  });
});

describe("failures", () => {
  test(covers("Responses", "error before the first byte", "openai"), async () => {
    for (const ask of [
      (input: string) => client.responses.create({ model, input }),
      (input: string) => client.responses.stream({ model, input }).finalResponse(),
    ]) {
      const broken = await failureOf(Promise.resolve(ask("refuse")));
      expect(broken).toBeInstanceOf(OpenAI.InternalServerError);
      const busy = (await failureOf(Promise.resolve(ask("refuse busy")))) as InstanceType<typeof OpenAI.RateLimitError>;
      expect(busy).toBeInstanceOf(OpenAI.RateLimitError);
      expect(busy.headers.get("retry-after")).toBe("1");
    }
    const unknown = await failureOf(Promise.resolve(client.responses.create({ model: "nobody", input: "a" })));
    expect(unknown).toMatchObject({ status: 404, code: "model_not_found", param: "model" });
  });

  test(covers("Responses", "error after it", "openai"), async () => {
    for (const input of ["fail midway", "cut midway"]) {
      const events: ResponseEvent[] = [];
      const read = async () => {
        const stream = await client.responses.create({ model, input, stream: true });
        for await (const event of stream) events.push(event as unknown as ResponseEvent);
      };
      const error = (await failureOf(read())) as InstanceType<typeof OpenAI.APIError>;
      expect(error).toBeInstanceOf(OpenAI.APIError);
      expect(error.code).toBe("server_error");
      expect(events.at(-1)).toMatchObject({ type: "response.output_item.done", item: { status: "incomplete" } });
      const helper = await failureOf(client.responses.stream({ model, input }).finalResponse());
      expect(helper).toBeInstanceOf(OpenAI.APIError);
    }
  });

  test(covers("Responses", "cut stream", "openai"), async () => {
    const { final } = await helped({ model, input: "count up", max_output_tokens: 20 });
    expect(final).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      usage: { output_tokens: 20 },
    });
    const stream = await client.responses.create({ model, input: "count up", stream: true });
    for await (const event of stream) if (event.type === "response.output_text.delta") break;
    stream.controller.abort();
    const idle = async () => (await server.engine.stats()).open === 0;
    while (!(await idle())) await Bun.sleep(5);
  });
});

test(covers("Responses", "long stream", "openai"), async () => {
  const { final, text, types } = await helped({ model, input: "count up" });
  expect(text).toBe(LONG);
  expect(final.output_text).toBe(LONG);
  expect(types.length).toBeGreaterThan(1000);
});
