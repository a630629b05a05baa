/** Completions in the compiled program, with OpenAI's client and a scripted engine; and /generate, which no vendor's client knows. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { checkCompletion } from "../support/schemas/completions.ts";
import { lastResults } from "../support/schemas/generate.ts";
import { BUILD_MS, collieBinary } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { eventually, startEngine, startGateway, type TestEngine, type TestGateway } from "./support/processes.ts";
import { openAiClient } from "./support/responses.ts";
import { failureOf, LONG } from "./support/scripted.ts";

const HELLO = "naïve 👩‍👩‍👧 日本 done";
const midway = { text: "alpha beta gamma delta epsilon", ms_per_token: 20, finish_reason: "stop" };
const SCRIPT = JSON.stringify([
  { contains: "say hello", text: HELLO, tokens_per_message: [1, 3, 2, 1] },
  { contains: "def add(", text: "a, b" },
  { contains: "say JSON", text: '{"city": "Oslo"}' },
  { contains: "never ends", text: LONG, finish_reason: "length" },
  { contains: "count up", text: LONG, tokens_per_message: [1, 7, 3] },
  { contains: "refuse busy", fault: { kind: "status", code: "RESOURCE_EXHAUSTED", message: "the queue is full" } },
  { contains: "refuse", fault: { kind: "status", code: "INTERNAL", message: "boom" } },
  { contains: "fail midway", ...midway, fault: { kind: "status", code: "INTERNAL", message: "boom", after_tokens: 3 } },
  { contains: "sleepy", fault: { kind: "hang" } },
]);

let engine: TestEngine;
let gateway: TestGateway;
let client: OpenAI;
let model: string;
beforeAll(async () => {
  collieBinary();
  engine = await startEngine(SCRIPT, ["--speed", "0"]);
  gateway = await startGateway([engine], ["--threads", "2"]);
  client = openAiClient(gateway);
  model = gateway.model;
}, BUILD_MS);
afterAll(async () => {
  await gateway?.stop();
  await engine?.stop();
});

/** Text and last reason of each choice of a stream. */
async function read(stream: AsyncIterable<OpenAI.Completion>) {
  const texts: string[] = [];
  const ends: (string | null)[] = [];
  let usage: OpenAI.CompletionUsage | null | undefined;
  for await (const chunk of stream) {
    expect(chunk.object).toBe("text_completion");
    for (const { index, text, finish_reason: end } of chunk.choices) {
      texts[index] = (texts[index] ?? "") + text;
      ends[index] = end;
    }
    usage = chunk.usage ?? usage;
  }
  return { texts, ends, usage };
}

async function tokenize(prompt: string): Promise<number[]> {
  const response = await fetch(`${gateway.url}/tokenize`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, prompt }),
  });
  return ((await response.json()) as { tokens: number[] }).tokens;
}

test(covers("Completions", "text", "openai"), async () => {
  const completion = await client.completions.create({ model, prompt: "say hello", max_tokens: 50 });
  checkCompletion(completion);
  expect(completion.choices[0]).toMatchObject({ text: HELLO, finish_reason: "stop", logprobs: null });
  expect(completion.usage!.prompt_tokens).toBe((await tokenize("say hello")).length);
});

test(covers("Completions", "stream", "openai"), async () => {
  const stream = await client.completions.create({
    model,
    prompt: "say hello",
    max_tokens: 50,
    stream: true,
    stream_options: { include_usage: true },
  });
  const { texts, ends, usage } = await read(stream);
  expect([texts, ends]).toEqual([[HELLO], ["stop"]]);
  const whole = await client.completions.create({ model, prompt: "say hello", max_tokens: 50 });
  expect(usage).toMatchObject({
    prompt_tokens: whole.usage!.prompt_tokens,
    completion_tokens: whole.usage!.completion_tokens,
  });
});

test(covers("Completions", "batches and n", "openai"), async () => {
  const ids = [await tokenize("say hello"), await tokenize("say JSON")];
  for (const prompt of [["say hello", "say JSON"], ids]) {
    const body = { model, prompt, n: 2, max_tokens: 50 };
    const { choices } = checkCompletion(await client.completions.create(body));
    const expected = [HELLO, HELLO, '{"city": "Oslo"}', '{"city": "Oslo"}'];
    expect(choices.map(({ text }) => text)).toEqual(expected);
    expect((await read(await client.completions.create({ ...body, stream: true }))).texts).toEqual(expected);
  }
});

test(covers("Completions", "echo and logprobs", "openai"), async () => {
  const prompt = "Now say hello";
  const ids = await tokenize(prompt);
  const body = { model, prompt, echo: true, logprobs: 2, max_tokens: 4 };
  const { choices } = checkCompletion(await client.completions.create(body));
  const { text, logprobs } = choices[0]!;
  expect(text).toStartWith(prompt);
  expect(logprobs!.tokens).toHaveLength(ids.length + 4);
  expect(logprobs!.tokens.slice(0, ids.length).join("")).toBe(prompt);
  expect(logprobs!.token_logprobs.indexOf(null)).toBe(0);
  expect(logprobs!.token_logprobs.lastIndexOf(null)).toBe(0);
  for (const [i, token] of logprobs!.tokens.entries())
    if (i > 0) expect(logprobs!.top_logprobs[i]![token]).toBeCloseTo(logprobs!.token_logprobs[i]!, 5);
  const streamed: OpenAI.CompletionChoice["logprobs"][] = [];
  for await (const chunk of await client.completions.create({ ...body, stream: true }))
    for (const choice of chunk.choices) streamed.push(choice.logprobs);
  expect(streamed.flatMap((found) => found?.tokens ?? [])).toEqual(logprobs!.tokens);
  const scored = checkCompletion(await client.completions.create({ ...body, max_tokens: 0 }));
  expect(scored.choices[0]!.text).toBe(prompt);
  expect(scored.choices[0]!.logprobs!.token_logprobs).toHaveLength(ids.length);
});

test(covers("Completions", "suffix", "openai"), async () => {
  const { choices } = await client.completions.create({ model, prompt: "def add(", suffix: "): return a + b" });
  expect(choices[0]!.text).toBe("a, b");
  const markers = ["<|fim_prefix|>def add(<|fim_suffix|>): return a + b<|fim_middle|>"];
  const [request] = (await engine.requests()).slice(-1);
  expect(request!.promptTokens).toBe((await tokenize(markers[0]!)).length);
});

test(covers("Completions", "structured output", "openai"), async () => {
  const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const body = { model, prompt: "say JSON", max_tokens: 30, guided_json: schema };
  const { choices } = await client.completions.create(body);
  expect(JSON.parse(choices[0]!.text)).toEqual({ city: "Oslo" });
  const [request] = (await engine.requests()).slice(-1);
  expect(JSON.stringify(request!.sampling)).toContain("json");
});

test(covers("Completions", "error before the first byte", "openai"), async () => {
  for (const stream of [false, true]) {
    const ask = (prompt: string, more = {}) => failureOf(client.completions.create({ model, prompt, stream, ...more }));
    const busy = await ask("refuse busy");
    expect(busy).toBeInstanceOf(OpenAI.RateLimitError);
    expect(await ask("refuse")).toBeInstanceOf(OpenAI.InternalServerError);
    const wrong = await ask("say hello", { best_of: 3 });
    expect(wrong).toBeInstanceOf(OpenAI.BadRequestError);
    expect(wrong).toMatchObject({ param: "best_of" });
    expect(await failureOf(client.completions.create({ model: "nobody", prompt: "a" }))).toBeInstanceOf(
      OpenAI.NotFoundError,
    );
  }
});

test(covers("Completions", "error after it", "openai"), async () => {
  const prompt = ["say hello", "fail midway"];
  const failure = await failureOf(read(await client.completions.create({ model, prompt, stream: true })));
  expect(failure).toBeInstanceOf(OpenAI.APIError);
  expect(failure).toMatchObject({ message: expect.stringContaining("boom") });
});

test(covers("Completions", "cut stream", "openai"), async () => {
  const before = (await engine.stats()).open;
  const prompt = Array.from({ length: 10 }, () => "sleepy");
  const leave = new AbortController();
  const left = failureOf(client.completions.create({ model, prompt, stream: true }, { signal: leave.signal }));
  await eventually(async () => (await engine.stats()).open === before + 10);
  leave.abort();
  expect(await left).toBeInstanceOf(OpenAI.APIUserAbortError);
  await eventually(async () => (await engine.stats()).open === before);
});

test(covers("Completions", "long stream", "openai"), async () => {
  const stream = await client.completions.create({
    model,
    prompt: ["count up", "count up"],
    max_tokens: 8000,
    stream: true,
  });
  expect((await read(stream)).texts).toEqual([LONG, LONG]);
  const cut = await client.completions.create({ model, prompt: "never ends", max_tokens: 100 });
  expect(cut.choices[0]).toMatchObject({ finish_reason: "length" });
  expect(cut.usage!.completion_tokens).toBe(100);
});

test("/generate answers whole and as a stream of growing texts", async () => {
  const post = (body: object) =>
    fetch(`${gateway.url}/generate`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const whole = await post({ text: "say hello", return_logprob: true, logprob_start_len: 0, top_logprobs_num: 2 });
  expect(whole.status).toBe(200);
  const [result] = lastResults([await whole.text(), "[DONE]"]);
  expect(result).toMatchObject({ text: HELLO });
  expect(result!.meta_info.input_token_logprobs).toHaveLength((await tokenize("say hello")).length);
  const stream = await post({ text: ["say hello", "say JSON"], stream: true });
  expect(stream.headers.get("content-type")).toStartWith("text/event-stream");
  const frames = (await stream.text()).split("\n\n").slice(0, -1);
  expect(lastResults(frames.map((frame) => frame.slice(6))).map(({ text }) => text)).toEqual([
    HELLO,
    '{"city": "Oslo"}',
  ]);
  expect((await post({ text: "refuse" })).status).toBe(500);
});
