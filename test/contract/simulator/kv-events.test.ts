import { expect, test } from "bun:test";
import * as grpc from "@grpc/grpc-js";
import { ask, type Client, type Plain, subscribe, until, withEngine } from "./harness.ts";

const INSTANT = { output: "echo", speed: "instant" } as const;
const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);

interface Block {
  readonly block_hash: string;
  readonly token_ids: number[];
  readonly block_size: number;
}
interface Stored {
  readonly blocks: Block[];
  readonly parent_block_hash?: string;
}

const eventsOf = (batches: readonly Plain[]): Plain[] => batches.flatMap((batch) => batch["events"] as Plain[]);
const storedOf = (batches: readonly Plain[]): Stored[] =>
  eventsOf(batches)
    .filter((event) => event["stored"] !== undefined)
    .map((event) => event["stored"] as Stored);

const flush = (client: Client): Promise<Plain> =>
  client.unary("FlushCache", "smg.grpc.common.FlushCacheRequest", "smg.grpc.common.FlushCacheResponse");

test("stored blocks chain up from the prompt, shared ones are told once, a flush shows with the next batch", () =>
  withEngine(INSTANT, async (client) => {
    await client.generate(ask(range(0, 20), { max_tokens: 1 }));
    const feed = await subscribe(client);
    const prompt = range(1000, 50);
    await client.generate(ask(prompt, { max_tokens: 1 }));
    await until(() => feed.batches.length > 0, "the first batch");
    const first = feed.batches[0]!;
    // The batch of the first request had number 1, though nobody listened.
    expect(first).toMatchObject({ sequence_number: "2", dp_rank: 0 });
    expect(first["load"]).toMatchObject({ sample: "1", max_running_requests: 256, max_total_num_tokens: 524_288 });
    const [stored] = storedOf([first]);
    expect(stored).not.toHaveProperty("parent_block_hash");
    expect(stored).toMatchObject({
      tier: 1,
      medium: "GPU",
      group_idx: 0,
      kv_cache_spec_kind: "full_attention",
      locality: 1,
    });
    expect(stored!.blocks.map((block) => block.token_ids)).toEqual([0, 16, 32].map((at) => prompt.slice(at, at + 16)));
    expect(new Set(stored!.blocks.map((block) => block.block_hash)).size).toBe(3);

    await client.generate(ask([...prompt.slice(0, 32), ...range(9000, 17)], { max_tokens: 1 }));
    await until(() => storedOf(feed.batches).length === 2, "the second prompt's block");
    const second = storedOf(feed.batches)[1]!;
    expect(second.parent_block_hash).toBe(stored!.blocks[1]!.block_hash);
    expect(second.blocks.map((block) => block.token_ids)).toEqual([range(9000, 16)]);

    await client.generate(ask(prompt, { max_tokens: 1 }));
    expect(storedOf(feed.batches)).toHaveLength(2);
    await flush(client);
    await client.generate(ask(prompt, { max_tokens: 1 }));
    await until(() => storedOf(feed.batches).length === 3, "the prompt after the flush");
    const last = feed.batches.filter((batch) => (batch["events"] as Plain[]).length > 0).at(-1)!;
    const events = last["events"] as Plain[];
    expect(events[0]).toMatchObject({ cleared: {} });
    expect((events[1]!["stored"] as Stored).blocks[0]!.block_hash).toBe(stored!.blocks[0]!.block_hash);
    expect(eventsOf(feed.batches).map((event) => Number(event["event_id"]))).toEqual([1, 2, 3, 4]);
    feed.cancel();
  }));

test("a mirror of the events equals what the engine finds in its cache, through answers and evictions", () =>
  withEngine({ ...INSTANT, kvTokens: 16 * 40, contextLength: 400 }, async (client, engine) => {
    const feed = await subscribe(client);
    for (let i = 0; i < 40; i++)
      await client.generate(ask(range((i % 7) * 1000, 30 + 5 * (i % 11)), { max_tokens: 20 + (i % 40) }));
    await until(() => feed.batches.some((batch) => (batch["load"] as Plain)["load_only"] === true), "a heartbeat");
    const mirror = new Set<string>();
    for (const event of eventsOf(feed.batches)) {
      for (const block of (event["stored"] as Stored | undefined)?.blocks ?? []) {
        expect(mirror.has(block.block_hash)).toBe(false);
        mirror.add(block.block_hash);
      }
      const removed = event["removed"] as { block_hashes: string[] } | undefined;
      for (const hash of removed?.block_hashes ?? []) expect(mirror.delete(hash)).toBe(true);
    }
    expect(engine.stats().engine.evictedBlocks).toBeGreaterThan(20);
    expect(mirror.size).toBe(engine.stats().engine.blocksCached);
    const numbers = feed.batches
      .filter((batch) => (batch["events"] as Plain[]).length > 0)
      .map((b) => Number(b["sequence_number"]));
    expect(numbers).toEqual(range(1, numbers.length));
    feed.cancel();
  }));

test("load records come in between, with the last number again", () =>
  withEngine({ output: "echo" }, async (client) => {
    const feed = await subscribe(client);
    await Bun.sleep(250);
    expect(feed.batches).toHaveLength(0);
    await client.generate(ask(range(0, 20), { max_tokens: 100 }));
    await until(() => feed.batches.filter((b) => (b["load"] as Plain)["load_only"] === true).length >= 3, "records");
    const records = feed.batches.map((batch) => batch["load"] as Plain);
    expect(records.map((record) => Number(record["sample"]))).toEqual(range(1, records.length));
    expect(records.some((record) => record["load_only"] === true && record["running_requests"] === 1)).toBe(true);
    for (const [i, batch] of feed.batches.entries())
      if ((batch["load"] as Plain)["load_only"])
        expect(batch["sequence_number"]).toBe(feed.batches[i - 1]!["sequence_number"]!);
    feed.cancel();
  }));

test("a cursor is refused; without a publisher there are no events", async () => {
  await withEngine(INSTANT, async (client) => {
    expect(await (await subscribe(client, 7)).status).toMatchObject({
      code: grpc.status.OUT_OF_RANGE,
      details: "KV event replay cursors are per subscription; resubscribe with zero and rebuild",
    });
  });
  await withEngine({ ...INSTANT, noKvEvents: true }, async (client) => {
    expect(await (await subscribe(client)).status).toMatchObject({ code: grpc.status.UNIMPLEMENTED });
  });
});

test("stopping the engine ends a subscription", () =>
  withEngine(INSTANT, async (client, engine) => {
    const feed = await subscribe(client);
    await engine.stop();
    expect(await feed.status).toMatchObject({ code: grpc.status.UNAVAILABLE });
  }));
