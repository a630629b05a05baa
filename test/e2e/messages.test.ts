/** Messages of the compiled program, judged by @anthropic-ai/sdk: its stream helper, its tool runner, its parser. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic, { APIError } from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";
import { check, message, modelInfo, modelPage } from "../support/schemas/messages.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { type MessagesServer, startMessages } from "./support/messages.ts";
import { eventually } from "./support/processes.ts";
import { BOTH, CITIES, degrees, failureOf, HELLO, LONG, ONE, THOUGHT, YES } from "./support/scripted.ts";

let server: MessagesServer;
let client: Anthropic;
let model: string;
beforeAll(async () => {
  server = await startMessages();
  ({ client, model } = server);
}, BUILD_MS);
afterAll(() => server?.stop());

type Body = Omit<Anthropic.MessageCreateParamsNonStreaming, "model" | "max_tokens" | "messages">;

const say = (text: string, more: Body = {}): Anthropic.MessageCreateParamsNonStreaming => ({
  model,
  max_tokens: 20_000,
  messages: [{ role: "user", content: text }],
  ...more,
});

const weather = {
  name: "get_weather",
  description: "Tells the weather",
  input_schema: { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] },
};

const bare = ({ id: _, content, usage, ...rest }: Anthropic.Message): unknown => ({
  ...rest,
  content: content.map((block) =>
    block.type === "tool_use" ? { ...block, id: "" } : block.type === "thinking" ? { ...block, signature: "" } : block,
  ),
  output: usage.output_tokens,
  input: usage.input_tokens + (usage.cache_read_input_tokens ?? 0),
});

/** Whole and through the stream helper: the same answer. */
async function bothWays(body: Anthropic.MessageCreateParamsNonStreaming): Promise<Anthropic.Message> {
  const whole = await client.messages.create(body);
  check(message, JSON.parse(JSON.stringify({ ...whole, _request_id: undefined })));
  const stream = client.messages.stream(body);
  let text = "";
  stream.on("text", (delta) => {
    text += delta;
  });
  const final = await stream.finalMessage();
  expect(text).toBe(final.content.map((block) => (block.type === "text" ? block.text : "")).join(""));
  const { parsed_output: _, ...streamed } = final;
  expect(bare(streamed)).toEqual(bare({ ...whole, _request_id: undefined } as unknown as Anthropic.Message));
  return whole;
}

const textOf = ({ content }: Pick<Anthropic.Message, "content">): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

test(covers("Messages", "text", "@anthropic-ai/sdk"), async () => {
  const answer = await client.messages.create(say("say hello"));
  expect([textOf(answer), answer.stop_reason, answer.model]).toEqual([HELLO, "end_turn", model]);
  expect(answer.usage.output_tokens).toBeGreaterThan(5);
  expect(answer._request_id).toBeString();
});

test(covers("Messages", "stream", "@anthropic-ai/sdk"), async () => {
  expect(textOf(await bothWays(say("say hello")))).toBe(HELLO);
  const types: string[] = [];
  for await (const event of await client.messages.create({ ...say("say hello"), stream: true })) types.push(event.type);
  expect(types.filter((type) => type !== "content_block_delta")).toEqual([
    "message_start",
    "content_block_start",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
});

test(covers("Messages", "reasoning", "@anthropic-ai/sdk"), async () => {
  const answer = await bothWays(say("think first", { thinking: { type: "adaptive" } }));
  const [thinking] = answer.content as [Anthropic.ThinkingBlock];
  expect([thinking.type, thinking.thinking.trim(), textOf(answer).trim()]).toEqual(["thinking", THOUGHT, YES]);
  expect(answer.usage.output_tokens_details?.thinking_tokens).toBeGreaterThan(1);
  const silent = await bothWays(say("think first"));
  expect(silent.content.map(({ type }) => type)).toEqual(["text"]);
});

describe("what was thought", () => {
  const replay = async (display: "summarized" | "omitted", change: (block: Anthropic.ThinkingBlock) => object) => {
    const body = say("think of Oslo", { thinking: { type: "adaptive", display }, tools: [weather] });
    const { content } = await client.messages.create(body);
    const [thinking, use] = content as [Anthropic.ThinkingBlock, Anthropic.ToolUseBlock];
    expect(thinking.thinking.trim()).toBe(display === "omitted" ? "" : THOUGHT);
    const answer = await client.messages.create({
      ...body,
      messages: [
        ...body.messages,
        { role: "assistant", content: [{ ...thinking, ...change(thinking) }, use] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: degrees("Oslo") }] },
      ],
    });
    return textOf(answer);
  };

  test(covers("Messages", "signed thinking goes back into the prompt", "@anthropic-ai/sdk"), async () => {
    expect(await replay("summarized", () => ({}))).toBe(`${ONE} I thought so.`);
    expect(await replay("omitted", () => ({}))).toBe(`${ONE} I thought so.`);
    expect(await replay("summarized", () => ({ signature: "s1.AAAA" }))).toBe(ONE);
    expect(await replay("summarized", ({ thinking }) => ({ thinking: `${thinking}!` }))).toBe(ONE);
  });
});

const tool = (asked: string[]) =>
  betaTool({
    name: "get_weather",
    description: "Tells the weather",
    inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    run: ({ city }) => {
      asked.push(city);
      return degrees(city);
    },
  });

/** The tool runner asks for a conversation that the server holds, is told that there is none, and goes on without. */
async function run(text: string, stream: boolean): Promise<{ asked: string[]; text: string }> {
  const asked: string[] = [];
  const body = { ...say(text), tools: [tool(asked)] };
  const final = stream
    ? await client.beta.messages.toolRunner({ ...body, stream: true }).runUntilDone()
    : await client.beta.messages.toolRunner(body).runUntilDone();
  return { asked, text: final.content.map((block) => (block.type === "text" ? block.text : "")).join("") };
}

test(covers("Messages", "one tool", "@anthropic-ai/sdk"), async () => {
  const answer = await bothWays(say("weather of Oslo", { tools: [weather] }));
  expect(answer.content).toMatchObject([{ type: "tool_use", name: "get_weather", input: { city: "Oslo" } }]);
  expect(answer.stop_reason).toBe("tool_use");
  for (const stream of [false, true])
    expect(await run("weather of Oslo", stream)).toEqual({ asked: ["Oslo"], text: ONE });
});

test(covers("Messages", "parallel tools", "@anthropic-ai/sdk"), async () => {
  const { content } = await bothWays(say("both towns", { tools: [weather] }));
  expect(content.map((block) => (block.type === "tool_use" ? block.input : block.type))).toEqual([
    "text",
    ...CITIES.map((city) => ({ city })),
  ]);
  for (const stream of [false, true]) expect(await run("both towns", stream)).toEqual({ asked: CITIES, text: BOTH });
});

test(covers("Messages", "a tool that must be called", "@anthropic-ai/sdk"), async () => {
  for (const tool_choice of [{ type: "any" as const }, { type: "tool" as const, name: "get_weather" }]) {
    const answer = await bothWays(say("weather of Oslo", { tools: [weather], tool_choice }));
    expect([answer.content[0]!.type, answer.stop_reason]).toEqual(["tool_use", "tool_use"]);
  }
});

test(covers("Messages", "structured output", "@anthropic-ai/sdk"), async () => {
  const format = zodOutputFormat(z.object({ city: z.string(), degrees: z.number() }));
  const parsed = await client.messages.parse({ ...say("say JSON"), output_config: { format } });
  expect(parsed.parsed_output).toEqual({ city: "Oslo", degrees: 4 });
  const final = await client.messages.stream({ ...say("say JSON"), output_config: { format } }).finalMessage();
  expect(final.parsed_output).toEqual({ city: "Oslo", degrees: 4 });
  const seen = (await server.engine.requests()).at(-1)!;
  expect(JSON.stringify(seen.sampling)).toContain("degrees");
});

test(covers("Messages", "error before the first byte", "@anthropic-ai/sdk"), async () => {
  for (const stream of [false, true]) {
    const busy = await failureOf(client.messages.create({ ...say("refuse busy"), stream }));
    expect(busy).toBeInstanceOf(Anthropic.OverloadedError);
    const broken = await failureOf(client.messages.create({ ...say("refuse this"), stream }));
    expect(broken).toBeInstanceOf(Anthropic.InternalServerError);
    expect((broken as APIError).requestID).toBeString();
  }
  const wrong = await failureOf(client.messages.create({ ...say("a"), tool_choice: { type: "any" } }));
  expect(wrong).toBeInstanceOf(Anthropic.BadRequestError);
  const unknown = await failureOf(client.messages.create({ ...say("a"), model: "unknown" }));
  expect(unknown).toBeInstanceOf(Anthropic.NotFoundError);
});

/** What came before the failure, and the failure. */
async function failing(text: string): Promise<{ text: string; error: unknown }> {
  let got = "";
  const error = await failureOf(
    (async () => {
      for await (const event of await client.messages.create({ ...say(text), stream: true }))
        if (event.type === "content_block_delta" && event.delta.type === "text_delta") got += event.delta.text;
    })(),
  );
  return { text: got, error };
}

test(covers("Messages", "error after it", "@anthropic-ai/sdk"), async () => {
  const { text, error } = await failing("fail midway");
  expect(text).toStartWith("alpha");
  expect(error).toBeInstanceOf(APIError);
  expect(((error as APIError).error as { error: { type: string } }).error.type).toBe("api_error");
  const helped = client.messages.stream(say("fail midway"));
  expect(await failureOf(helped.finalMessage())).toBeInstanceOf(APIError);
});

test(covers("Messages", "cut stream", "@anthropic-ai/sdk"), async () => {
  expect((await failing("cut midway")).error).toBeInstanceOf(APIError);
  const before = (await server.engine.stats()).open;
  const stream = await client.messages
    .create({ ...say("hold on"), stream: true }, { timeout: 500 })
    .catch(() => undefined);
  stream?.controller.abort();
  await eventually(async () => (await server.engine.stats()).open === before);
});

test(covers("Messages", "long stream", "@anthropic-ai/sdk"), async () => {
  expect(textOf(await bothWays(say("count up")))).toBe(LONG);
});

test(covers("Messages", "count_tokens", "@anthropic-ai/sdk"), async () => {
  const body = say("say hello", { tools: [weather], system: "Be brief.", thinking: { type: "adaptive" } });
  const { max_tokens: _, ...asked } = body;
  const { input_tokens } = await client.messages.countTokens(asked);
  const { usage } = await client.messages.create(body);
  expect(input_tokens).toBe(usage.input_tokens + (usage.cache_read_input_tokens ?? 0));
});

test(covers("Messages", "stop sequences and lengths", "@anthropic-ai/sdk"), async () => {
  const stopped = await bothWays(say("say hello", { stop_sequences: ["done"] }));
  expect([stopped.stop_reason, stopped.stop_sequence]).toEqual(["stop_sequence", "done"]);
  const short = await bothWays({ ...say("say hello"), max_tokens: 3 });
  expect(short.stop_reason).toBe("max_tokens");
  // as Claude Code asks of every model: what the context cannot hold is cut
  expect(textOf(await bothWays({ ...say("say hello"), max_tokens: 20_000 }))).toBe(HELLO);
});

test(covers("Messages", "cached input", "@anthropic-ai/sdk"), async () => {
  const body = say("say hello", { system: "You are brief. ".repeat(300) });
  const { usage: first } = await client.messages.create(body);
  const { usage: second } = await client.messages.stream(body).finalMessage();
  expect(second.cache_read_input_tokens).toBeGreaterThan(500);
  const total = (usage: Anthropic.Usage) => usage.input_tokens + (usage.cache_read_input_tokens ?? 0);
  expect(total(second)).toBe(total(first));
});

test(covers("Models", "list and one", "@anthropic-ai/sdk"), async () => {
  const list = await client.models.list();
  expect(list.data.map(({ id }) => id)).toContain(model);
  check(
    modelPage,
    await (await fetch(`${server.gateway.url}/v1/models`, { headers: { "anthropic-version": "2023-06-01" } })).json(),
  );
  const { _request_id, ...one } = (await client.models.retrieve(model)) as Anthropic.ModelInfo & {
    _request_id?: string;
  };
  check(modelInfo, JSON.parse(JSON.stringify(one)));
  expect(await failureOf(client.models.retrieve("un/known"))).toBeInstanceOf(Anthropic.NotFoundError);
});
