/** Four threads on one tokenizer cache, so small that they write where others read all the time. */
import { expect, test } from "bun:test";
import { createTokenizerCache } from "../../../src/tokenizer/cache/board.ts";
import { cacheStats } from "../../../src/tokenizer/cache/stats.ts";
import { openTokenizer } from "../../../src/tokenizer/load.ts";
import type { CacheReport, CacheTask } from "../../support/cache-thread.ts";
import { smallHandle } from "../../unit/tokenizer/fixtures.ts";

const THREADS = 4;
const entry = new URL("../../support/cache-thread.ts", import.meta.url);

function run(task: CacheTask): { worker: Worker; report: Promise<CacheReport> } {
  const worker = new Worker(entry);
  const report = new Promise<CacheReport>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<CacheReport>) => {
      worker.terminate();
      resolve(data);
    };
    worker.onerror = (event) => reject(new Error(event.message));
  });
  worker.postMessage(task);
  return { worker, report };
}
const sum = (reports: readonly CacheReport[], of: (report: CacheReport) => number): number =>
  reports.reduce((total, report) => total + of(report), 0);

const handle = await smallHandle("cl100k");
const plain = openTokenizer(handle);
/** Ten chats of twelve turns. */
const texts = Array.from({ length: 120 }, (_, i) => {
  const [chat, turns] = [Math.floor(i / 12), (i % 12) + 1];
  return Array.from({ length: turns }, (_, turn) => `<|begin|>${`chat${chat} turn${turn} `.repeat(270)}<|end|>\n`).join(
    "",
  );
});
const ids = texts.map((text) => plain.encode(text));

test.each([
  ["that evicts all the time", 600_000, 16],
  ["that keeps all", 30_000_000, 1000],
])(
  "no wrong ids, counters that add up, and limits that hold, in a cache %s",
  async (_, bytes, l0Entries) => {
    const memory = createTokenizerCache({ l0: true, l1: true, l0Entries, bytes });
    const calls = 2500;
    const threads = Array.from({ length: THREADS }, (_, i) =>
      run({ type: "encode", handle, memory, texts, ids, calls, seed: 7 + i }),
    );
    let running = true;
    const reports = Promise.all(threads.map(({ report }) => report)).finally(() => {
      running = false;
    });
    let evictions = 0;
    while (running) {
      const [l0] = cacheStats(memory);
      expect(l0!.entries).toBeLessThanOrEqual(l0Entries);
      expect(l0!.bytes).toBeLessThanOrEqual(bytes + l0Entries * 16);
      expect(l0!.evictions).toBeGreaterThanOrEqual(evictions);
      evictions = l0!.evictions;
      await Bun.sleep(1);
    }
    expect(sum(await reports, ({ wrong }) => wrong)).toBe(0);
    const [l0, l1] = cacheStats(memory);
    expect(l0!.hits + l0!.misses).toBe(THREADS * calls);
    expect(l1!.hits + l1!.misses).toBe(l0!.misses);
    expect(l0!.insertions).toBeLessThanOrEqual(l0!.misses);
    expect(l0!.evictions).toBe(l0!.insertions - l0!.entries);
    expect(l0!.hits).toBeGreaterThan(50);
    expect(l1!.hits).toBeGreaterThan(50);
    if (l0Entries > texts.length) expect(l0!.misses).toBeLessThan(texts.length * THREADS);
    else expect(l0!.evictions).toBeGreaterThan(1000);
  },
  60_000,
);

test("no torn read in a ring that turns under its readers", async () => {
  const memory = createTokenizerCache({ l0: true, l1: false, l0Entries: 256, bytes: 16_384 });
  const threads = Array.from({ length: THREADS }, (_, i) =>
    run({ type: "records", memory, calls: 150_000, seed: 100 + i }),
  );
  const reports = await Promise.all(threads.map(({ report }) => report));
  expect(sum(reports, ({ wrong }) => wrong)).toBe(0);
  expect(sum(reports, ({ hits }) => hits)).toBeGreaterThan(1000);
  expect(sum(reports, ({ puts }) => puts)).toBeGreaterThan(100_000);
}, 60_000);

test("threads that are ended in the middle hold nobody up, and leave nothing wrong behind", async () => {
  const memory = createTokenizerCache({ l0: true, l1: false, l0Entries: 256, bytes: 16_384 });
  for (let round = 0; round < 6; round++) {
    const victims = [1, 2].map((i) => run({ type: "records", memory, calls: 1e9, seed: round * 10 + i }));
    await Bun.sleep(30 + round * 7);
    for (const { worker } of victims) worker.terminate();
    const { report } = run({ type: "records", memory, calls: 20_000, seed: 1000 + round });
    const { wrong, hits, puts } = await report;
    expect(wrong).toBe(0);
    expect(hits).toBeGreaterThan(50);
    expect(puts).toBeGreaterThan(1000);
  }
}, 60_000);
