/** The tokenizer's cache in the whole program, seen through its metrics. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { BUILD_MS, collieBinary } from "./support/binary.ts";
import { chat, start, startEngine, startGateway, type TestEngine, type TestGateway } from "./support/processes.ts";

const THREADS = 2;

let engine: TestEngine;
beforeAll(async () => {
  collieBinary();
  engine = await startEngine("[]", ["--output", "echo", "--speed", "0"]);
}, BUILD_MS);
afterAll(async () => {
  await engine?.stop();
});

async function metrics(gateway: TestGateway): Promise<Map<string, number>> {
  const [, url] = await gateway.program.until(/metrics.* url="?(http:[^\s"]+)/);
  const text = await (await fetch(url!)).text();
  const rows = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(rows.map((row) => [row.slice(0, row.lastIndexOf(" ")), Number(row.slice(row.lastIndexOf(" ")))]));
}
const series = (gateway: TestGateway, name: string, level: string): string =>
  `collie_tokenizer_cache_${name}{model="${gateway.model}",level="${level}"}`;

const long = (i: number): string => `A question about number ${i}. `.repeat(120);
async function ask(gateway: TestGateway, turns: number): Promise<string> {
  const messages = Array.from({ length: turns }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: long(i) }));
  const response = await chat(gateway, { model: gateway.model, max_tokens: 8000, messages });
  expect(response.status).toBe(200);
  const answer = (await response.json()) as {
    choices: [{ message: { content: string } }];
    usage: { prompt_tokens: number };
  };
  return `${answer.usage.prompt_tokens} ${answer.choices[0].message.content}`; // the engine says the prompt's tokens again
}

test("repeated and grown chats are hits, over all threads, with the same answers as without a cache", async () => {
  const args = ["--prometheus-port", "0", "--prometheus-host", "127.0.0.1", "--threads", String(THREADS)];
  const [gateway, without] = await Promise.all([
    startGateway([engine], [...args, "--tokenizer-cache-verify", "1"]),
    startGateway([engine], [...args, "--no-tokenizer-cache-enable-l0", "--no-tokenizer-cache-enable-l1"]),
  ]);
  try {
    // What each thread rehearses at its start leaves nothing here.
    const before = await metrics(gateway);
    expect(before.get(series(gateway, "misses_total", "l0"))).toBe(0);
    expect(before.get(series(gateway, "enabled", "l0"))).toBe(1);
    expect(before.get(series(gateway, "enabled", "l1"))).toBe(1);
    for (const turns of [1, 1, 1, 3, 3, 5, 7]) expect(await ask(gateway, turns)).toBe(await ask(without, turns));
    const after = await metrics(gateway);
    const grew = (name: string, level: string): number =>
      after.get(series(gateway, name, level))! - before.get(series(gateway, name, level))!;
    expect(grew("hits_total", "l0")).toBe(3);
    expect(grew("misses_total", "l0")).toBe(4);
    expect(grew("hits_total", "l1")).toBe(3);
    expect(grew("entries", "l0")).toBe(4);
    expect(grew("bytes", "l0")).toBeGreaterThan(20_000);
    expect(after.get(series(gateway, "mismatches_total", "l0"))).toBe(0);
    expect(after.get(series(gateway, "mismatches_total", "l1"))).toBe(0);
    expect([...(await metrics(without)).keys()].filter((name) => name.startsWith("collie_tokenizer"))).toEqual([]);
  } finally {
    await Promise.all([gateway.stop(), without.stop()]);
  }
}, 60_000);

test("a metrics port that is taken stops the start", async () => {
  const holder = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const program = start([
    "serve",
    ...["--host", "127.0.0.1", "--port", "0", "--worker-urls", engine.url],
    ...["--prometheus-host", "127.0.0.1", "--prometheus-port", String(holder.port)],
  ]);
  expect(await program.exited).toBe(1);
  expect(program.output()).toContain(`cannot listen for metrics on 127.0.0.1:${holder.port}`);
  holder.stop(true);
});

test("a level that is on with a limit of 0 stops the start", async () => {
  const program = start(["serve", "--worker-urls", engine.url, "--tokenizer-cache-l0-max-entries", "0"]);
  expect(await program.exited).toBe(2);
  expect(program.output()).toContain("--tokenizer-cache-l0-max-entries: is 0");
});
