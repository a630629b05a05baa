/** Embeddings, rerank and classify in the compiled program, with OpenAI's client and engines that give vectors. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { demoModelFiles } from "../../src/tokenizer/demo-model.ts";
import { BUILD_MS, collieBinary } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { eventually, startEngine, startGateway, type TestEngine, type TestGateway } from "./support/processes.ts";
import { openAiClient } from "./support/responses.ts";

const DIMENSIONS = 64;
const folder = mkdtempSync(join(tmpdir(), "collie-embeddings-"));
/** Prompts with "sleepy" are never answered. */
const SCRIPT = "[{ contains: sleepy, fault: { kind: hang } }]";
const config = {
  architectures: ["Qwen3ForSequenceClassification"],
  matryoshka_dimensions: [8, 32],
  id2label: { 0: "calm", 1: "glad", 2: "sad" },
};

let engines: TestEngine[];
let gateway: TestGateway;
let client: OpenAI;
beforeAll(async () => {
  collieBinary();
  for (const [name, bytes] of await demoModelFiles()) writeFileSync(join(folder, name), bytes);
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  const args = ["--model-path", folder, "--served-model-name", "vectors", "--context-length", "100"];
  engines = await Promise.all([0, 1].map(() => startEngine(SCRIPT, [...args, "--pooling-dim", String(DIMENSIONS)])));
  gateway = await startGateway(engines, ["--threads", "2"]);
  client = openAiClient(gateway);
}, BUILD_MS);
afterAll(async () => {
  await gateway?.stop();
  await Promise.all((engines ?? []).map((engine) => engine.stop()));
  rmSync(folder, { recursive: true, force: true });
});

const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
const failure = (work: Promise<unknown>) => work.then(() => undefined).catch((error: unknown) => error);
const count = async (key: "received" | "open" | "abortedByCancel") =>
  (await Promise.all(engines.map((engine) => engine.stats()))).reduce((sum, stats) => sum + stats[key], 0);

describe("OpenAI's client", () => {
  test(covers("Embeddings", "base64 and numbers are the same", "openai"), async () => {
    const input = ["A man is eating food.", "A man is eating a meal.", "Quantum chromodynamics"];
    const base64 = await client.embeddings.create({ model: "vectors", input });
    const float = await client.embeddings.create({ model: "vectors", input, encoding_format: "float" });
    expect(base64.data.map(({ index, object }) => [index, object])).toEqual(input.map((_, i) => [i, "embedding"]));
    expect(base64.data.map(({ embedding }) => Array.from(embedding))).toEqual(
      float.data.map(({ embedding }) => embedding),
    );
    expect(base64.usage).toEqual(float.usage);
    expect([base64.object, base64.model]).toEqual(["list", "vectors"]);
    const [food, meal, physics] = float.data.map(({ embedding }) => embedding) as [number[], number[], number[]];
    expect(food).toHaveLength(DIMENSIONS);
    expect(dot(food, food)).toBeCloseTo(1, 5);
    expect(dot(food, meal)).toBeGreaterThan(dot(food, physics) + 0.3);
  });

  test(covers("Embeddings", "texts, ids and lists of both, counted", "openai"), async () => {
    const tokens = await fetch(`${gateway.url}/tokenize`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "vectors", prompt: "A man is eating food." }),
    });
    const { tokens: ids } = (await tokens.json()) as { tokens: number[] };
    const text = await client.embeddings.create({ model: "vectors", input: "A man is eating food." });
    const asIds = await client.embeddings.create({ model: "vectors", input: ids });
    const both = await client.embeddings.create({ model: "vectors", input: [ids, ids] });
    expect(text.usage).toEqual({ prompt_tokens: ids.length, total_tokens: ids.length });
    expect(both.usage.total_tokens).toBe(2 * ids.length);
    for (const { embedding } of [...asIds.data, ...both.data]) expect(embedding).toEqual(text.data[0]!.embedding);
  });

  test(covers("Embeddings", "a large batch, in order, over two engines", "openai"), async () => {
    const before = await count("received");
    const input = Array.from({ length: 500 }, (_, i) => `text number ${i}`);
    const { data } = await client.embeddings.create({ model: "vectors", input });
    expect(data.map(({ index }) => index)).toEqual(input.map((_, i) => i));
    const alone = await client.embeddings.create({ model: "vectors", input: input[321]! });
    expect(data[321]!.embedding).toEqual(alone.data[0]!.embedding);
    expect(await count("received")).toBe(before + 501);
    for (const engine of engines) expect((await engine.stats()).received).toBeGreaterThan(100);
  });

  test(covers("Embeddings", "dimensions, and errors", "openai"), async () => {
    const { data } = await client.embeddings.create({ model: "vectors", input: "a b c", dimensions: 8 });
    expect(data[0]!.embedding).toHaveLength(8);
    expect(dot(data[0]!.embedding, data[0]!.embedding)).toBeCloseTo(1, 5);
    const wrong = await failure(client.embeddings.create({ model: "vectors", input: "a", dimensions: 9 }));
    expect(wrong).toBeInstanceOf(OpenAI.BadRequestError);
    expect(wrong).toMatchObject({ param: "dimensions" });
    const long = await failure(client.embeddings.create({ model: "vectors", input: "word ".repeat(200) }));
    expect(long).toBeInstanceOf(OpenAI.BadRequestError);
    expect(long).toMatchObject({ code: "context_length_exceeded", param: "input" });
    const unknown = await failure(client.embeddings.create({ model: "nobody", input: "a" }));
    expect(unknown).toBeInstanceOf(OpenAI.NotFoundError);
  });

  test(covers("Embeddings", "a client that leaves", "openai"), async () => {
    const before = await count("abortedByCancel");
    const leave = new AbortController();
    const input = Array.from({ length: 10 }, () => "sleepy");
    const left = failure(client.embeddings.create({ model: "vectors", input }, { signal: leave.signal }));
    await eventually(async () => (await count("open")) === 10);
    leave.abort();
    expect(await left).toBeInstanceOf(OpenAI.APIUserAbortError);
    await eventually(async () => (await count("open")) === 0);
    expect(await count("abortedByCancel")).toBe(before + 10);
  });
});

async function post(path: string, body: object, status = 200) {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  expect([response.status, text]).toEqual([status, text]);
  return JSON.parse(text) as Record<string, unknown>;
}

test(covers("Rerank", "the nearest document first", "fetch"), async () => {
  const documents = ["Snow falls in winter", "The capital of France is Paris", { text: "Paris is in France" }];
  for (const path of ["/rerank", "/v1/rerank"]) {
    const { results } = await post(path, { model: "vectors", query: "capital of France", documents, top_n: 2 });
    expect((results as { index: number }[]).map(({ index }) => index)).toEqual([1, 2]);
  }
});

test("an engine of vectors neither classifies nor chats, and says so", async () => {
  const labels = await post("/v1/classify", { model: "vectors", input: "a" }, 400);
  expect(labels["error"]).toMatchObject({ message: expect.stringContaining("64 numbers for 3 labels") });
  const messages = [{ role: "user", content: "a" }];
  const chat = await post("/v1/chat/completions", { model: "vectors", messages }, 400);
  expect(chat["error"]).toMatchObject({ param: "model", message: expect.stringContaining("gives vectors") });
});

test(covers("Classify", "labels of config.json", "fetch"), async () => {
  const args = ["--model-path", folder, "--served-model-name", "moods", "--pooling-dim", "3"];
  const engine = await startEngine("[]", args);
  const moods = await startGateway([engine]);
  try {
    const response = await fetch(`${moods.url}/v1/classify`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "moods", input: ["a", "b"] }),
    });
    const { data } = (await response.json()) as { data: { index: number; label: string; probs: number[] }[] };
    expect(data.map(({ index }) => index)).toEqual([0, 1]);
    for (const { label, probs } of data) {
      expect(probs).toHaveLength(3);
      expect(probs.reduce((sum, value) => sum + value)).toBeCloseTo(1, 10);
      expect(label).toBe(Object.values(config.id2label)[probs.indexOf(Math.max(...probs))]!);
    }
  } finally {
    await moods.stop();
    await engine.stop();
  }
});

// The last one: it leaves one engine.
test("an engine that is gone costs the client nothing", async () => {
  engines[0]!.program.kill("SIGKILL");
  await engines[0]!.program.exited;
  const input = Array.from({ length: 100 }, (_, i) => `text ${i}`);
  for (let i = 0; i < 5; i++) {
    const { data } = await client.embeddings.create({ model: "vectors", input });
    expect(data).toHaveLength(100);
  }
});
