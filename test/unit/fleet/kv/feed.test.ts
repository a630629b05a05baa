/** The subscription of one worker against batches of every order, on the real index. */
import { describe, expect, test } from "bun:test";
import type { KvBatch, KvEnd, KvEvent, KvSource } from "../../../../src/engines/kv-events.ts";
import { KvFeed } from "../../../../src/fleet/kv/feed.ts";
import type { Work, WorkQueue } from "../../../../src/fleet/kv/work.ts";
import { chainRoot } from "../../../../src/routing/chain.ts";
import { createLogger } from "../../../../src/telemetry/log.ts";
import { MetricRegistry } from "../../../../src/telemetry/registry.ts";
import { PrefixBoard } from "../../../../src/threads/prefix-board.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { hashWords } from "../../../support/hash-words.ts";
import { chainOf } from "../../../support/prefix.ts";

const SIZE = 16;
const ids = (first: number, blocks: number): Uint32Array =>
  Uint32Array.from({ length: blocks * SIZE }, (_, i) => first * 1000 + i);

function stored(hash: number, blocks: number, more: Partial<KvEvent & { kind: "stored" }> = {}): KvEvent {
  return {
    kind: "stored",
    parent: undefined,
    hashes: hashWords(...Array.from({ length: blocks }, (_, i) => BigInt(hash * 100 + i))),
    tokenIds: ids(hash, blocks),
    blockSize: SIZE,
    isLocalDevice: true,
    ...more,
  };
}
const removed = (...hashes: number[]): KvEvent => ({
  kind: "removed",
  hashes: hashWords(...hashes.map(BigInt)),
  isLocalDevice: true,
});
const batch = (sequence: number, ...events: KvEvent[]): KvBatch => ({ sequence, rank: 0, events, isLoadOnly: false });

function world({ ranks = 1, megabytes = 1, atOnce = 0 } = {}) {
  const clock = new FakeClock();
  const board = PrefixBoard.create(1, megabytes);
  const index = board.writer();
  const reader = board.reader(0);
  const members = Array.from({ length: ranks }, (_, rank) => index.claim(0, rank));
  const metrics = new MetricRegistry();
  const lines: string[] = [];
  const works: Work[] = [];
  const work: WorkQueue = { add: (one) => void works.push(one), mayDoNow: (blocks) => blocks <= atOnce, close() {} };
  const changes: string[] = [];
  const paused: boolean[] = [];
  let subscriptions = 0;
  let give: (batch: KvBatch) => void = () => {};
  let end: (why: KvEnd, message: string) => void = () => {};
  let answeredAt = 0;
  let isLeaving = false;
  const source: KvSource = {
    subscribe(onBatch, onEnd) {
      subscriptions++;
      [give, end] = [onBatch, onEnd];
      return { close() {}, pause: () => void paused.push(true), resume: () => void paused.push(false) };
    },
  };
  const feed = new KvFeed(
    {
      url: "w",
      model: "m",
      members,
      source: () => source,
      isLeaving: () => isLeaving,
      hasAnsweredSince: (time) => answeredAt > time,
      changed: (sendsEvents, blockSize) => void changes.push(`${sendsEvents} ${blockSize ?? "-"}`),
      load() {},
    },
    {
      clock,
      log: createLogger({ level: "warn", json: false, write: (line) => lines.push(line) }),
      metrics,
      work,
      index,
    },
  );
  const settle = () => {
    for (const one of works.splice(0)) while (one.next().done !== true);
  };
  return {
    clock,
    feed,
    lines,
    changes,
    paused,
    settle,
    give: (...batches: KvBatch[]) => {
      for (const one of batches) give(one);
      settle();
    },
    giveLater: (one: KvBatch) => give(one),
    end: (why: KvEnd) => end(why, "told"),
    leave: () => {
      isLeaving = true;
    },
    answered: () => {
      answeredAt = clock.now();
    },
    subscriptions: () => subscriptions,
    depth(
      hash: number,
      blocks: number,
      {
        rank = 0,
        lora,
        salt,
        tokens = ids(hash, blocks),
      }: { rank?: number; lora?: string; salt?: string; tokens?: Uint32Array } = {},
    ) {
      const chain = chainOf(chainRoot("m", SIZE, lora, salt), tokens, SIZE);
      return reader.match(chain, clock.now()).depth(members[rank]!);
    },
    /** It was sent there. */
    guess(hash: number, blocks: number, rank = 0) {
      reader.promise(chainOf(chainRoot("m", SIZE), ids(hash, blocks), SIZE), 0, members[rank]!, clock.now());
    },
    counted: (name: string, ...labels: string[]) =>
      (metrics.counted()[name] ?? [])
        .filter((series) => labels.every((label) => series.labels.includes(label)))
        .reduce((sum, { value }) => sum + value, 0),
  };
}

describe("events", () => {
  test("become blocks of the index, and go from it with their last copy", () => {
    const w = world();
    w.give(batch(5, stored(1, 3)), batch(6, stored(2, 2, { parent: hashWords(102n), tokenIds: ids(2, 2) })));
    const whole = Uint32Array.from([...ids(1, 3), ...ids(2, 2)]);
    expect(w.depth(0, 5, { tokens: whole })).toBe(5);
    expect(w.changes).toEqual(["true 16"]);
    w.give(batch(7, stored(1, 3)), batch(8, removed(102)));
    expect(w.depth(1, 3)).toBe(3);
    w.give(batch(9, removed(102, 101, 999)));
    expect(w.depth(1, 3)).toBe(2);
    expect(w.counted("collie_kv_events_total", "removed")).toBe(3);
    expect(w.counted("collie_kv_events_total", "ignored")).toBe(1);
  });

  test("of little are written at once, but not before others of the same worker that wait", () => {
    const w = world({ atOnce: 5 });
    w.giveLater(batch(5, stored(1, 3)));
    expect(w.depth(1, 3)).toBe(3);
    w.giveLater(batch(6, stored(2, 30)));
    w.giveLater(batch(7, removed(229)));
    expect([w.depth(2, 30), w.counted("collie_kv_events_total", "ignored")]).toEqual([0, 0]);
    w.settle();
    expect(w.depth(2, 30)).toBe(29);
    expect(w.changes).toEqual(["true 16"]);
    w.giveLater(batch(9, stored(3, 2)));
    expect([w.depth(1, 3), w.depth(3, 2), w.counted("collie_kv_event_gaps_total")]).toEqual([0, 2, 1]);
  });

  test("of an unknown parent, of a slower tier or of blocks of another size are left out", () => {
    const w = world();
    w.give(
      batch(
        1,
        stored(1, 1),
        stored(2, 2, { parent: hashWords(77n) }),
        stored(3, 1, { isLocalDevice: false }),
        stored(4, 1, { blockSize: 64, tokenIds: new Uint32Array(64) }),
      ),
    );
    expect([1, 2, 3].map((hash) => w.depth(hash, 1))).toEqual([1, 0, 0]);
    expect(w.counted("collie_kv_events_total", "orphan")).toBe(2);
    expect(w.counted("collie_kv_events_total", "ignored")).toBe(2);
  });

  test("of adapters and salts live in spaces of their own", () => {
    const w = world();
    w.give(batch(1, stored(1, 2, { lora: "tuned" }), stored(2, 1, { cacheSalt: "s" })));
    expect([w.depth(1, 2), w.depth(1, 2, { lora: "tuned" })]).toEqual([0, 2]);
    expect([w.depth(2, 1), w.depth(2, 1, { salt: "s" })]).toEqual([0, 1]);
  });
});

describe("numbers", () => {
  test("that were there are passed over; a gap or a start from the beginning clears the worker", () => {
    const w = world();
    w.give(batch(10, stored(1, 1)), batch(10, stored(2, 1)), batch(9, stored(3, 1)));
    expect([1, 2, 3].map((hash) => w.depth(hash, 1))).toEqual([1, 0, 0]);
    w.give(batch(12, stored(4, 1)));
    expect([1, 4].map((hash) => w.depth(hash, 1))).toEqual([0, 1]);
    expect(w.counted("collie_kv_event_gaps_total")).toBe(1);
    w.give(batch(1, stored(5, 1)), batch(2, stored(6, 1)));
    expect([4, 5, 6].map((hash) => w.depth(hash, 1))).toEqual([0, 1, 1]);
    w.give(batch(3, { kind: "cleared" }, stored(7, 1)));
    expect([5, 7].map((hash) => w.depth(hash, 1))).toEqual([0, 1]);
    expect(w.counted("collie_kv_event_gaps_total")).toBe(1);
  });

  test("are counted by rank: what one has missed is not another's loss", () => {
    const w = world({ ranks: 2 });
    const at = (rank: number, one: KvBatch) => ({ ...one, rank });
    w.give(at(0, batch(1, stored(1, 1))), at(1, batch(50, stored(2, 1))), at(1, batch(52, stored(3, 1))));
    expect([w.depth(1, 1), w.depth(2, 1, { rank: 1 }), w.depth(3, 1, { rank: 1 })]).toEqual([1, 0, 1]);
    w.give(at(7, batch(1, stored(4, 1)))); // no such rank is known
    expect(w.depth(4, 1)).toBe(0);
  });

  test("of loads alone mean nothing", () => {
    const w = world();
    w.give(batch(5, stored(1, 1)), { ...batch(5), isLoadOnly: true }, { ...batch(0), isLoadOnly: true });
    w.give(batch(6, stored(2, 1)));
    expect([1, 2].map((hash) => w.depth(hash, 1))).toEqual([1, 1]);
  });
});

describe("what was sent to a worker", () => {
  const MINUTE = 60_000;
  const isBelieved = async (w: ReturnType<typeof world>, hash: number, ms: number, rank = 0) => {
    w.guess(hash, 2, rank);
    await w.clock.pass(ms);
    return w.depth(hash, 2, { rank }) === 2;
  };

  test("is believed for seconds where all that it holds was told, for half an hour where it may hold what was never told", async () => {
    const w = world();
    w.give(batch(1, stored(1, 1)));
    expect([await isBelieved(w, 2, 8000), await isBelieved(w, 3, MINUTE)]).toEqual([true, false]);
    w.give(batch(3, stored(4, 1))); // a gap
    expect([await isBelieved(w, 5, 29 * MINUTE), await isBelieved(w, 6, 31 * MINUTE)]).toEqual([true, false]);
    w.give(batch(4, { kind: "cleared" }), batch(5, stored(7, 1)));
    expect(await isBelieved(w, 8, MINUTE)).toBe(false);
    w.feed.close();
  });

  test("is believed for half an hour of one that was full before anybody listened, and of each rank by itself", async () => {
    const w = world({ ranks: 2 });
    w.give({ ...batch(40, stored(1, 1)), rank: 0 }, { ...batch(1, stored(2, 1)), rank: 1 });
    expect([await isBelieved(w, 3, MINUTE), await isBelieved(w, 4, MINUTE, 1)]).toEqual([true, false]);
    w.give({
      ...batch(41, { kind: "cleared" }, stored(5, 1)),
      snapshot: { index: 0, count: 1, isPartial: true },
      rank: 0,
    });
    expect(await isBelieved(w, 5, MINUTE)).toBe(true);
    w.give({ ...batch(42, { kind: "cleared" }, stored(5, 1)), snapshot: { index: 0, count: 1 }, rank: 0 });
    expect(await isBelieved(w, 6, MINUTE)).toBe(false);
    w.feed.close();
  });
});

describe("a subscription", () => {
  test("that goes on at the next number has missed nothing; by rank, where ranks are caches of their own", async () => {
    const w = world({ ranks: 2 });
    w.give({ ...batch(1, stored(1, 1)), rank: 0 }, { ...batch(7, stored(2, 1)), rank: 1 });
    w.end("lost");
    await w.clock.pass(100);
    w.end("lost"); // and once more, before anything has come
    await w.clock.pass(200);
    expect(w.subscriptions()).toBe(3);
    w.give({ ...batch(2, stored(3, 1)), rank: 0 }, { ...batch(9, stored(4, 1)), rank: 1 });
    expect([w.depth(1, 1), w.depth(3, 1)]).toEqual([1, 1]);
    expect([w.depth(2, 1, { rank: 1 }), w.depth(4, 1, { rank: 1 })]).toEqual([0, 1]);
    expect(w.counted("collie_kv_event_gaps_total")).toBe(0);
    w.guess(5, 1);
    await w.clock.pass(20_000);
    expect(w.depth(5, 1)).toBe(0); // all of it is told still
    w.end("gap");
    await w.clock.pass(0);
    w.give({ ...batch(3, stored(6, 1)), rank: 0 });
    expect([w.depth(1, 1), w.depth(6, 1)]).toEqual([0, 1]);
    w.feed.close();
  });

  test("that was lost is made anew, ever more rarely, and begins from nothing once something comes", async () => {
    const w = world();
    w.give(batch(5, stored(1, 1)));
    w.end("lost");
    expect([w.changes.at(-1), w.depth(1, 1)]).toEqual(["false 16", 1]);
    await w.clock.pass(100);
    expect(w.subscriptions()).toBe(2);
    w.end("lost");
    await w.clock.pass(150);
    expect(w.subscriptions()).toBe(2);
    await w.clock.pass(50);
    expect(w.subscriptions()).toBe(3);
    w.give(batch(40, stored(2, 1)));
    expect([1, 2].map((hash) => w.depth(hash, 1))).toEqual([0, 1]);
    expect(w.changes.at(-1)).toBe("true 16");
    w.end("lost");
    await w.clock.pass(100); // it begins with short pauses again
    expect(w.subscriptions()).toBe(4);
  });

  test("that the engine ended for a gap is made anew at once, the first time", async () => {
    const w = world();
    w.give(batch(5, stored(1, 1)));
    w.end("gap");
    expect(w.depth(1, 1)).toBe(0);
    await w.clock.pass(0);
    expect(w.subscriptions()).toBe(2);
    w.end("gap");
    await w.clock.pass(50);
    expect(w.subscriptions()).toBe(2);
    await w.clock.pass(50);
    expect(w.subscriptions()).toBe(3);
  });

  test("that is not offered is never made again", async () => {
    const w = world();
    w.end("unimplemented");
    await w.clock.pass(3_600_000);
    expect([w.subscriptions(), w.changes, w.clock.waits]).toEqual([1, [], 0]);
  });

  test("that ends as its worker is taken out has not failed", () => {
    const w = world();
    w.give(batch(5, stored(1, 1)));
    w.leave();
    w.end("lost");
    expect(w.counted("smg_kv_event_subscription_failures_total")).toBe(0);
    w.feed.close();
    expect(w.clock.waits).toBe(0);
  });

  test("that has ended leaves nothing to do of what it brought", () => {
    const w = world();
    w.give(batch(5, stored(1, 1)));
    w.giveLater(batch(6, stored(2, 1)));
    w.end("lost");
    w.settle();
    expect([w.depth(2, 1), w.changes.at(-1)]).toEqual([0, "false 16"]);
  });

  test("waits while more has come than is written, and goes on", () => {
    const w = world({ megabytes: 4 });
    for (let i = 0; i < 40; i++) w.giveLater(batch(i + 1, stored(i + 1, 1000)));
    expect(w.paused).toEqual([true]);
    w.settle();
    expect(w.paused).toEqual([true, false]);
    expect(w.depth(40, 1000)).toBe(1000);
  });

  test("of a worker that answers and says nothing is told of once", async () => {
    const w = world();
    await w.clock.pass(121_000);
    expect(w.lines).toEqual([]);
    w.answered();
    await w.clock.pass(600_000);
    expect(w.lines).toHaveLength(1);
    expect(w.counted("smg_kv_event_subscription_failures_total", "silent")).toBe(1);
    w.feed.close();
    expect(w.clock.waits).toBe(0);
  });
});
