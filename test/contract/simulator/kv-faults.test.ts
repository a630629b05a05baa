/** What the simulated engine shows of its cache, and what goes wrong with its KV events. */
import { expect, test } from "bun:test";
import * as grpc from "@grpc/grpc-js";
import type { Simulator } from "../../../src/simulator/simulator.ts";
import { ask, type Client, type KvFeed, type Plain, subscribe, until, withEngine } from "./harness.ts";

const INSTANT = { output: "echo", speed: "instant" } as const;
const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);
const say = (client: Client, prompt: readonly number[], rest: Plain = {}) =>
  client.generate(ask(prompt, { max_tokens: 1 }, rest));
const numbers = (feed: KvFeed) =>
  feed.batches.filter(({ events }) => (events as Plain[]).length > 0).map((batch) => Number(batch["sequence_number"]));

/** What the events of a feed leave behind: copies by rank and hash. */
function mirrorOf(feed: KvFeed): Map<string, number> {
  const mirror = new Map<string, number>();
  for (const batch of feed.batches)
    for (const event of batch["events"] as Plain[]) {
      const key = (hash: string) => `${batch["dp_rank"] as number} ${hash}`;
      const change = (hash: string, by: number) => {
        const copies = (mirror.get(key(hash)) ?? 0) + by;
        if (copies > 0) mirror.set(key(hash), copies);
        else mirror.delete(key(hash));
      };
      const { stored, removed } = event as {
        stored?: { blocks: { block_hash: string }[] };
        removed?: { block_hashes: string[] };
      };
      for (const { block_hash } of stored?.blocks ?? []) change(block_hash, 1);
      for (const hash of removed?.block_hashes ?? []) change(hash, -1);
      if (event["cleared"])
        for (const known of [...mirror.keys()])
          if (known.startsWith(`${batch["dp_rank"] as number} `)) mirror.delete(known);
    }
  return mirror;
}

function held(engine: Simulator): Map<string, number> {
  return new Map(
    engine
      .blocks()
      .flatMap(({ rank, blocks }) => blocks.map(({ hash, copies }) => [`${rank} ${hash}`, copies] as const)),
  );
}

async function fetchJson(engine: Simulator, path: string, body?: unknown): Promise<Plain> {
  const response = await fetch(
    `http://127.0.0.1:${engine.statsPort}${path}`,
    body === undefined ? {} : { method: "POST", body: JSON.stringify(body) },
  );
  return (await response.json()) as Plain;
}

test("the cache shows its blocks with their tokens and parents, and how much of a prompt it has", () =>
  withEngine({ ...INSTANT, dataParallelSize: 2 }, async (client, engine) => {
    const prompt = range(100, 48);
    await say(client, prompt, { data_parallel_rank: 1 });
    const { ranks } = (await fetchJson(engine, "/blocks")) as {
      ranks: {
        rank: number;
        blockSize: number;
        blocks: { hash: string; parent: string | null; tokenIds: number[] }[];
      }[];
    };
    expect(ranks.map(({ rank, blockSize, blocks }) => [rank, blockSize, blocks.length])).toEqual([
      [0, 16, 0],
      [1, 16, 3],
    ]);
    const { blocks } = ranks[1]!;
    expect(blocks.flatMap(({ tokenIds }) => tokenIds)).toEqual(prompt);
    expect(blocks.map(({ parent }) => parent)).toEqual([null, blocks[0]!.hash, blocks[1]!.hash]);
    const matched = (token_ids: number[], rank?: number) => fetchJson(engine, "/match", { token_ids, rank });
    // Never the last token.
    expect(await matched(prompt, 1)).toEqual({ tokens: 32 });
    expect(await matched([...prompt, 1], 1)).toEqual({ tokens: 48 });
    expect(await matched(prompt)).toEqual({ tokens: 0 });
    expect(await matched(prompt, 2)).toEqual({ error: "rank: must be below 2" });
  }));

test("ranks have caches, numbers and loads of their own; requests go where they are pinned, else to the emptiest", () =>
  withEngine({ ...INSTANT, dataParallelSize: 2, kvTokens: 16 * 40, contextLength: 400 }, async (client, engine) => {
    const feed = await subscribe(client);
    for (let i = 0; i < 30; i++)
      await client.generate(
        ask(range((i % 5) * 1000, 64), { max_tokens: 5 + i }, i < 20 ? { data_parallel_rank: i % 2 } : {}),
      );
    await until(() => numbers(feed).length >= 30, "all batches");
    await until(() => Bun.deepEquals(mirrorOf(feed), held(engine)), "the mirror equals both caches");
    for (const rank of [0, 1]) {
      const own = feed.batches.filter((batch) => batch["dp_rank"] === rank && (batch["events"] as Plain[]).length > 0);
      expect(own.map((batch) => Number(batch["sequence_number"]))).toEqual(range(1, own.length));
    }
    expect(engine.stats().pinnedByRank).toEqual({ 0: 10, 1: 10 });
    expect(engine.stats().ranks.every(({ blocksCached }) => blocksCached > 10)).toBe(true);
    expect(
      engine
        .requests()
        .map(({ rank }) => rank)
        .slice(20),
    ).toEqual(range(0, 10).map((i) => i % 2));
    // The same prompt comes to both: two copies of its last block, which is computed each time.
    expect([...held(engine).values()].some((copies) => copies > 1)).toBe(true);
    const loads = await client.unary(
      "GetLoads",
      "vllm.grpc.engine.GetLoadsRequest",
      "vllm.grpc.engine.GetLoadsResponse",
    );
    expect((loads["loads"] as Plain[]).map((load) => load["dp_rank"] ?? 0)).toEqual([0, 1]);
    feed.cancel();
  }));

test("an old engine tells of rank 0 only", () =>
  withEngine({ ...INSTANT, dataParallelSize: 2, protocol: "0.4.14" }, async (client) => {
    const feed = await subscribe(client);
    for (const rank of [1, 0]) await say(client, range(rank * 1000, 32), { data_parallel_rank: rank });
    await until(() => feed.batches.length === 1, "the batch of rank 0");
    expect(feed.batches[0]).toMatchObject({ sequence_number: "1", dp_rank: 0 });
    expect(feed.batches[0]).not.toHaveProperty("load");
    feed.cancel();
  }));

test("a lost batch: an old engine leaves a gap, a new one ends the stream", async () => {
  await withEngine({ ...INSTANT, protocol: "0.4.14" }, async (client, engine) => {
    const feed = await subscribe(client);
    for (let i = 0; i < 3; i++) {
      if (i === 1) engine.setFault({ fault: "kv-gap", times: 1 });
      await say(client, range(i * 1000, 32));
    }
    await until(() => feed.batches.length === 2, "what came through");
    expect(numbers(feed)).toEqual([1, 3]);
    feed.cancel();
  });
  await withEngine(INSTANT, async (client, engine) => {
    const feed = await subscribe(client);
    engine.setFault({ fault: "kv-gap", times: 1 });
    await say(client, range(0, 32));
    expect(await feed.status).toMatchObject({ code: grpc.status.DATA_LOSS });
    const again = await subscribe(client);
    await say(client, range(1000, 32));
    await until(() => again.batches.length > 0, "the next batch");
    expect(numbers(again)).toEqual([2]);
    again.cancel();
  });
});

test("events that are silent, late or broken off", () =>
  withEngine(INSTANT, async (client, engine) => {
    const feed = await subscribe(client);
    await fetchJson(engine, "/faults", { fault: "kv-silent" });
    await say(client, range(0, 32));
    engine.clearFaults();
    await fetchJson(engine, "/faults", { fault: { kind: "kv-late", ms: 150 }, times: 1 });
    const before = performance.now();
    await say(client, range(1000, 32));
    await say(client, range(2000, 32));
    await until(() => numbers(feed).length === 2, "the late batch and the one behind it");
    expect(performance.now() - before).toBeGreaterThanOrEqual(140);
    expect(numbers(feed)).toEqual([2, 3]);
    await fetchJson(engine, "/faults", { fault: "kv-reset", times: 1 });
    expect(await feed.status).toMatchObject({ code: grpc.status.UNAVAILABLE });
    engine.setFault({ fault: "kv-out-of-range", times: 1 });
    expect(await (await subscribe(client)).status).toMatchObject({ code: grpc.status.OUT_OF_RANGE });
    const again = await subscribe(client);
    again.cancel();
  }));

test("a server with history gives it, goes on from a cursor, and makes a snapshot of what it no longer has", () =>
  withEngine({ ...INSTANT, kvHistory: 3 }, async (client, engine) => {
    const long = range(0, 16 * 600);
    for (const prompt of [long.slice(0, 32), range(20_000, 32)]) await say(client, prompt);
    const early = await subscribe(client);
    await until(() => numbers(early).length === 2, "the history");
    expect(numbers(early)).toEqual([1, 2]);
    await say(client, range(30_000, 32));
    const later = await subscribe(client, 2);
    await until(() => numbers(later).length > 0, "what came behind the cursor");
    expect(numbers(later)).toEqual([3]);
    await say(client, long);
    const late = await subscribe(client);
    await until(() => Bun.deepEquals(mirrorOf(late), held(engine)), "the snapshot is the cache");
    const [first, second] = late.batches as { sequence_number: string; snapshot: Plain; events: Plain[] }[];
    expect(first!.snapshot).toMatchObject({ count: 2, blocks: "604" });
    expect(first!.events[0]).toMatchObject({ cleared: {} });
    expect(second!.snapshot).toMatchObject({ index: 1, count: 2 });
    expect(Number(second!.sequence_number)).toBe(Number(first!.sequence_number) + 1);
    expect(await (await subscribe(client, 1)).status).toMatchObject({ code: grpc.status.OUT_OF_RANGE });
    await say(client, range(40_000, 32));
    await until(() => Bun.deepEquals(mirrorOf(late), held(engine)), "events go on");
    for (const feed of [early, later, late]) feed.cancel();
  }));

test("after a restart with another block size numbers start over", () =>
  withEngine(INSTANT, async (client, engine) => {
    const feed = await subscribe(client);
    for (const from of [0, 1000]) await say(client, range(from, 64));
    await engine.restart({ blockSize: 32 });
    expect((await feed.status).code).not.toBe(grpc.status.OK);
    let again = await subscribe(client);
    while ((await Promise.race([again.status, Bun.sleep(100)])) !== undefined) again = await subscribe(client);
    await say(client, range(0, 64));
    await until(() => again.batches.length > 0, "a batch of the new life");
    expect(numbers(again)).toEqual([1]);
    expect(engine.blocks()[0]).toMatchObject({ blockSize: 32 });
    again.cancel();
  }));
