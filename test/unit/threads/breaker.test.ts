import { beforeEach, describe, expect, test } from "bun:test";
import { type BreakerRules, FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";

const RULES: BreakerRules = { failures: 4, rate: 0.5, successes: 2, timeoutMs: 60_000, windowMs: 100_000 };
const START = 1_700_000_000_000;

let board: FleetBoard;
let slot: number;
let now: number;

function world(rules: BreakerRules | undefined = RULES, threads = 3): void {
  board = FleetBoard.create(threads, rules);
  slot = claim();
  now = START;
}

function claim(): number {
  const claimed = board.claim();
  board.setState(claimed, WorkerState.ready);
  for (let thread = 0; thread < 3; thread++) board.book(claimed, thread, 0, START);
  return claimed;
}

beforeEach(() => world());

/** Ends of requests, as `+` and `-`, at the threads in turn. The number of those that opened the breaker. */
const ends = (what: string, at = slot) =>
  [...what].filter((end, i) => board.breaker.count(at, i % 3, end === "-", false, now)).length;
const state = () => board.breaker.state(slot);
const open = () => {
  ends("----");
  now += RULES.timeoutMs;
};

describe("a circuit breaker opens", () => {
  test.each([
    ["at so many failures, whichever thread saw them", "----", "open"],
    ["not with one less", "---", "closed"],
    ["if they are a large enough share", "++++----", "open"],
    ["not if they are less", "+++++----", "closed"],
    ["not by good ends, however few there were before", "---++++++++++", "closed"],
  ] as const)("%s", (_, what, becomes) => {
    expect(ends(what)).toBe(becomes === "open" ? 1 : 0);
    expect(state()).toBe(becomes);
  });

  test("once: more failures of requests that were on their way are no news", () => {
    expect(ends("----------")).toBe(1);
  });

  test("never without rules", () => {
    world(undefined);
    board = FleetBoard.create(3);
    slot = claim();
    expect(ends("-".repeat(100))).toBe(0);
    expect(state()).toBe("closed");
  });

  test("by failures of the window alone: old ones leave it bucket by bucket", () => {
    ends("--");
    now += 50_000;
    ends("-");
    now += 51_000; // the first two are out
    expect(ends("--")).toBe(0);
    now += 1_000;
    expect(ends("-")).toBe(1);
  });

  test("for one worker, not for its neighbours", () => {
    const other = claim();
    ends("---");
    expect(ends("---", other)).toBe(0);
    ends("-");
    expect([board.breaker.state(slot), board.breaker.state(other)]).toEqual(["open", "closed"]);
  });
});

describe("an open one", () => {
  test("is tried after its timeout, and tells how long that is", () => {
    ends("----");
    expect(board.breaker.waitMs(slot, now)).toBe(60_000);
    now += 59_000;
    expect(board.breaker.waitMs(slot, now)).toBe(1000);
    expect(board.breaker.tryProbe(slot, 0, now)).toBe(false);
    now += 1000;
    expect(board.breaker.waitMs(slot, now)).toBe(0);
    expect(board.breaker.tryProbe(slot, 0, now)).toBe(true);
    expect(state()).toBe("half-open");
  });

  test("by one request at a time in the whole process", () => {
    open();
    expect([0, 1, 2, 0].map((thread) => board.breaker.tryProbe(slot, thread, now))).toEqual([
      true,
      false,
      false,
      false,
    ]);
    expect(board.breaker.waitMs(slot, now)).toBe(Number.POSITIVE_INFINITY);
    board.breaker.probed(slot, 0, "neutral", now);
    expect([1, 2].map((thread) => board.breaker.tryProbe(slot, thread, now))).toEqual([true, false]);
    board.breaker.probed(slot, 2, "ok", now); // it is not this thread's
    expect(board.breaker.tryProbe(slot, 2, now)).toBe(false);
  });

  test("closes after so many good ones in a row, and begins to count anew", () => {
    open();
    board.breaker.tryProbe(slot, 0, now);
    expect(board.breaker.probed(slot, 0, "ok", now)).toBe(false);
    expect(state()).toBe("half-open");
    board.breaker.tryProbe(slot, 1, now);
    expect(board.breaker.probed(slot, 1, "ok", now)).toBe(true);
    expect(state()).toBe("closed");
    expect(ends("---")).toBe(0);
    expect(ends("-")).toBe(1);
  });

  test("stays so when one of them fails, and waits again", () => {
    open();
    board.breaker.tryProbe(slot, 0, now);
    board.breaker.probed(slot, 0, "ok", now);
    board.breaker.tryProbe(slot, 1, now);
    board.breaker.probed(slot, 1, "failure", now);
    expect(state()).toBe("open");
    expect(board.breaker.waitMs(slot, now)).toBe(60_000);
    now += RULES.timeoutMs;
    // what went well before counts no more
    board.breaker.tryProbe(slot, 0, now);
    expect(board.breaker.probed(slot, 0, "ok", now)).toBe(false);
  });

  test("neutral ends neither close nor open it", () => {
    open();
    for (let i = 0; i < 5; i++) {
      expect(board.breaker.tryProbe(slot, i % 3, now)).toBe(true);
      expect(board.breaker.probed(slot, i % 3, "neutral", now)).toBe(false);
    }
    expect(state()).toBe("half-open");
  });

  test("opens again when a request that had tried it well fails later on", () => {
    open();
    board.breaker.tryProbe(slot, 0, now);
    board.breaker.probed(slot, 0, "ok", now);
    expect(board.breaker.count(slot, 0, true, false, now)).toBe(false); // one that was on its way before
    expect(board.breaker.count(slot, 0, true, true, now)).toBe(true);
    expect(state()).toBe("open");
  });

  test("is tried by another thread when the one that did has died", () => {
    open();
    board.breaker.tryProbe(slot, 1, now);
    board.forgetThread(0);
    expect(board.breaker.tryProbe(slot, 2, now)).toBe(false);
    board.forgetThread(1);
    expect(board.breaker.tryProbe(slot, 2, now)).toBe(true);
  });

  test("keeps its time when the thread that opened it has died", () => {
    ends("----");
    for (let thread = 0; thread < 3; thread++) board.forgetThread(thread);
    expect(board.breaker.waitMs(slot, now)).toBe(60_000);
  });
});

test("the next worker of a row begins with a closed one, and the last one's requests do not touch it", () => {
  open();
  board.breaker.tryProbe(slot, 0, now);
  board.free(slot);
  const next = claim();
  expect(next % 1024).toBe(slot % 1024);
  expect([board.breaker.state(next), board.breaker.state(slot)]).toEqual(["closed", "closed"]);
  expect(ends("-".repeat(20))).toBe(0);
  expect(board.breaker.probed(slot, 0, "failure", now)).toBe(false);
  expect(board.breaker.tryProbe(slot, 0, now)).toBe(false);
  expect(board.breaker.state(next)).toBe("closed");
  expect(ends("---", next)).toBe(0);
  expect(ends("-", next)).toBe(1);
});

test("rules of any size fit: 1000 good ones in a row, a second's window", () => {
  world({ failures: 1, rate: 1, successes: 1000, timeoutMs: 1000, windowMs: 1000 });
  expect(ends("-")).toBe(1);
  now += 1000;
  for (let i = 1; i <= 1000; i++) {
    expect(board.breaker.tryProbe(slot, i % 3, now)).toBe(true);
    expect(board.breaker.probed(slot, i % 3, "ok", now)).toBe(i === 1000);
  }
  expect(state()).toBe("closed");
  ends("+");
  expect(ends("-")).toBe(0);
  now += 1100;
  expect(ends("-")).toBe(1);
});
