/** Batches of KV events against the reference codec, and damaged ones. */
import { describe, expect, test } from "bun:test";
import { decodeKvBatch } from "../../../../src/engines/kv/decode.ts";
import type { KvBatch } from "../../../../src/engines/kv-events.ts";
import { WireReader } from "../../../../src/protobuf/reader.ts";
import { WireError } from "../../../../src/protobuf/wire-error.ts";
import { WireWriter } from "../../../../src/protobuf/writer.ts";
import { hashesOf, hashWords } from "../../../support/hash-words.ts";
import { dialectPackage } from "../../../support/proto-package.ts";

const reference = dialectPackage("vllm");
const encode = (batch: Record<string, unknown>): Uint8Array => reference.encode("smg.grpc.common.KvEventBatch", batch);
const decode = (batch: Record<string, unknown>): KvBatch => decodeKvBatch(encode(batch));

const block = (hash: string | number, ids: readonly number[], more: Record<string, unknown> = {}) => ({
  block_hash: hash,
  token_ids: ids,
  block_size: ids.length,
  ...more,
});

const STORED = {
  sequence_number: 12,
  timestamp: 1.5,
  dp_rank: 3,
  events: [
    {
      event_id: 1,
      stored: {
        blocks: [
          block("-9223372036854775808", [1, 2, 3, 300_000]),
          block("9223372036854775807", [5, 6, 7, 8], {
            extra_keys: [{ multimodal: { identifier: "cat", offset: 2 } }],
          }),
          block(-1, [9, 10, 11, 4_294_967_295], { extra_keys: [{ text: "tuned" }, { text: "salt" }] }),
        ],
        parent_block_hash: "-5",
        tier: 1,
        medium: "GPU",
        kv_cache_spec_kind: "full_attention",
        locality: 1,
        lora_name: "tuned",
        cache_salt: "salt",
      },
    },
    { event_id: 2, removed: { block_hashes: ["-9223372036854775808", 7], tier: 1 } },
    { event_id: 3, cleared: {} },
  ],
  load: { running_requests: 2, waiting_requests: 1, token_usage: 0.25, gen_throughput: 100, max_running_requests: 8 },
};

describe("a batch", () => {
  test("is read as it was written", () => {
    const batch = decode(STORED);
    expect(batch).toMatchObject({ sequence: 12, rank: 3, isLoadOnly: false, snapshot: undefined });
    expect(batch.events).toEqual([
      {
        kind: "stored",
        parent: hashWords(-5n),
        hashes: hashWords(-(2n ** 63n), 2n ** 63n - 1n, -1n),
        tokenIds: Uint32Array.of(1, 2, 3, 300_000, 5, 6, 7, 8, 9, 10, 11, 4_294_967_295),
        blockSize: 4,
        lora: "tuned",
        cacheSalt: "salt",
        media: [undefined, ["cat"], undefined],
        isLocalDevice: true,
      },
      { kind: "removed", hashes: hashWords(-(2n ** 63n), 7n), isLocalDevice: true },
      { kind: "cleared" },
    ]);
    expect(batch.load).toMatchObject({
      rank: 3,
      running: 2,
      waiting: 1,
      tokenUsage: 0.25,
      throughput: 100,
      maxRunning: 8,
    });
    expect(batch.load?.waitingUncachedTokens).toBeUndefined();
  });

  test("brings a load alone, or a piece of a snapshot", () => {
    expect(decode({ sequence_number: 1, load: { load_only: true, waiting_uncached_tokens: 0 } })).toMatchObject({
      isLoadOnly: true,
      events: [],
      load: { waitingUncachedTokens: 0, tokenUsage: 0 },
    });
    expect(decode({ sequence_number: 1, snapshot: { index: 1, count: 3 } }).snapshot).toEqual({ index: 1, count: 3 });
  });

  test.each([
    [{ tier: 2 }, false],
    [{ tier: 0, medium: "CPU" }, false],
    [{ medium: "cuda:0" }, true],
    [{ locality: 2 }, false],
    [{ kv_cache_spec_kind: "sliding_window" }, false],
    [{ kv_cache_spec_kind: "mla_attention" }, true],
    [{}, true],
  ])("whose blocks are %j is of the device: %p", (where, isLocalDevice) => {
    const [event] = decode({ events: [{ stored: { blocks: [block(1, [1, 2])], ...where } }] }).events;
    expect(event).toMatchObject({ isLocalDevice });
  });

  test("with a block of a slower tier among them is not of the device, nor a removal from one", () => {
    const stored = { blocks: [block(1, [1, 2]), block(2, [3, 4], { cache_level: 1 })] };
    const { events } = decode({ events: [{ stored }, { removed: { block_hashes: [1], cache_level: 2 } }] });
    expect(events).toMatchObject([{ isLocalDevice: false }, { isLocalDevice: false }]);
  });

  test("is used up to a block that is no whole one", () => {
    const blocks = [block(1, [1, 2]), { ...block(2, [3]), block_size: 2 }, block(3, [4, 5])];
    expect(decode({ events: [{ stored: { blocks } }] }).events[0]).toMatchObject({
      hashes: hashWords(1n),
      tokenIds: Uint32Array.of(1, 2),
    });
  });

  test("may be larger than anything before it", () => {
    const blocks = Array.from({ length: 3000 }, (_, i) =>
      block(
        i - 1500,
        Array.from({ length: 16 }, (_, j) => i * 16 + j),
      ),
    );
    const [event] = decode({ events: [{ stored: { blocks } }] }).events;
    if (event?.kind !== "stored") throw new Error("not stored");
    const hashes = hashesOf(event.hashes);
    expect([hashes.length, hashes[0], hashes[2999]]).toEqual([3000, -1500n, 1499n]);
    expect(event.tokenIds).toEqual(Uint32Array.from({ length: 48_000 }, (_, i) => i));
    const removed = decode({ events: [{ removed: { block_hashes: [...hashes].map(String) } }] }).events[0];
    expect(removed).toEqual({ kind: "removed", hashes: event.hashes, isLocalDevice: true });
  });

  test("that is damaged is refused, or read as something: it never loops, and throws nothing else", () => {
    const good = encode(STORED);
    let refused = 0;
    const take = (bytes: Uint8Array) => {
      try {
        decodeKvBatch(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(WireError);
        refused++;
      }
    };
    for (let end = 0; end < good.length; end++) take(good.subarray(0, end));
    for (let at = 0; at < good.length; at++)
      for (const bits of [1, 0x80, 0xff]) {
        const bytes = good.slice();
        bytes[at]! ^= bits;
        take(bytes);
      }
    expect(refused).toBeGreaterThan(good.length / 2);
  });
});

test("64-bit numbers are read as words as they are as bigints", () => {
  const into = new BigInt64Array(1);
  const words = new Int32Array(into.buffer);
  for (let i = 0; i < 2000; i++) {
    const value = BigInt.asIntN(64, (BigInt(i) * 0x9e3779b97f4a7c15n) >> BigInt(i % 64));
    const writer = new WireWriter();
    writer.varint64(value);
    const reader = new WireReader(writer.written());
    reader.int64Words(words, 0);
    expect(into[0]).toBe(value);
    expect(reader.at).toBe(reader.end);
  }
  expect(() => new WireReader(new Uint8Array(11).fill(0x80)).int64Words(words, 0)).toThrow(WireError);
});
