import { afterAll, describe, expect, test } from "bun:test";
import { FleetBoard, MAX_THREADS, WorkerState } from "../../../src/threads/fleet-board.ts";
import type { Task } from "./booking-worker.ts";

const THREADS = 4;
const workers = Array.from({ length: THREADS }, () => new Worker(new URL("./booking-worker.ts", import.meta.url).href));
afterAll(() => {
  for (const worker of workers) worker.terminate();
});

/** Gives each worker its task, all at once; resolves to their answers. */
function all(task: (thread: number) => Task): Promise<number[][]> {
  return Promise.all(
    workers.map((worker, thread) => {
      const { promise, resolve, reject } = Promise.withResolvers<number[]>();
      worker.onmessage = ({ data }: MessageEvent<number[]>) => resolve(data);
      worker.onerror = (event) => reject(new Error(event.message));
      worker.postMessage(task(thread));
      return promise;
    }),
  );
}

const countOf = (held: number[][], slot: number) => held.flat().filter((one) => one === slot).length;

describe("real threads", () => {
  test("book and release 100,000 times each: the sums are right at the end", async () => {
    const board = FleetBoard.create(THREADS);
    const slots = Array.from({ length: 3 }, () => board.claim());
    const held = await all((thread) => ({ kind: "book", memory: board.memory, thread, slots, steps: 100_000 }));
    expect(held.flat().length).toBeGreaterThan(0);
    for (const slot of slots) expect(board.running(slot)).toBe(countOf(held, slot));

    // a thread that dies takes its own bookings with it, and only these
    board.forgetThread(2);
    const left = held.filter((_, thread) => thread !== 2);
    for (const slot of slots) expect(board.running(slot)).toBe(countOf(left, slot));

    // the others release what they hold
    held.forEach((own, thread) => {
      if (thread !== 2) for (const slot of own) board.release(slot, thread);
    });
    for (const slot of slots) expect(board.running(slot)).toBe(0);
  });

  test("claim the same board: no row is given twice", async () => {
    const board = FleetBoard.create(THREADS);
    const claimed = (await all(() => ({ kind: "claim", memory: board.memory, count: 256 }))).flat();
    expect(claimed.length).toBe(1024);
    expect(new Set(claimed).size).toBe(1024);
    expect(() => board.claim()).toThrow(RangeError);
  });
});

test("every view of the memory shows the same", () => {
  const board = FleetBoard.create(2);
  const other = FleetBoard.open(board.memory);
  const slot = board.claim();
  expect(other.state(slot)).toBe(WorkerState.starting);
  other.setState(slot, WorkerState.ready);
  other.book(slot, 1);
  board.book(slot, 0);
  expect([board.state(slot), board.running(slot), other.running(slot)]).toEqual([WorkerState.ready, 2, 2]);
});

test("rows and columns do not touch each other", () => {
  const board = FleetBoard.create(MAX_THREADS);
  const slots = Array.from({ length: 1024 }, () => board.claim());
  for (const slot of slots) {
    board.setState(slot, WorkerState.ready);
    for (let thread = 0; thread < MAX_THREADS; thread++) board.book(slot, thread);
  }
  for (const slot of slots) {
    expect(board.state(slot)).toBe(WorkerState.ready);
    expect(board.running(slot)).toBe(MAX_THREADS);
  }
  board.forgetThread(MAX_THREADS - 1);
  for (const slot of slots) {
    expect(board.state(slot)).toBe(WorkerState.ready);
    expect(board.running(slot)).toBe(MAX_THREADS - 1);
  }
});

test("a released row can be claimed again", () => {
  const board = FleetBoard.create(1);
  const [first, second] = [board.claim(), board.claim()];
  board.free(first);
  const again = board.claim();
  expect([again, board.claim()]).toEqual([first + 1024, second + 1]); // the same row in its next epoch
});

test.each([0, -1, MAX_THREADS + 1])("%d threads are refused", (threads) => {
  expect(() => FleetBoard.create(threads)).toThrow(RangeError);
});

describe("a worker's load", () => {
  const NOW = 1_700_000_000_000;

  test("counts running requests, those that have begun, and tokens that wait for their first one", () => {
    const board = FleetBoard.create(2);
    const slot = board.claim();
    const counts = () => [board.running(slot), board.begunCount(slot), board.queuedTokens(slot)];
    board.book(slot, 0, 100);
    board.book(slot, 1, 20);
    expect(counts()).toEqual([2, 0, 120]);
    board.begun(slot, 0, 100);
    expect(counts()).toEqual([2, 1, 20]);
    board.release(slot, 0, 100, true);
    board.release(slot, 1, 20);
    expect(counts()).toEqual([0, 0, 0]);
  });

  test("as it reports it is read back, with its age; unknown stays unknown", () => {
    const board = FleetBoard.create(1);
    const slot = board.claim();
    expect(board.load(slot)).toBeUndefined();
    const load = {
      running: 3,
      waiting: 2,
      waitingTokens: 4096,
      usedTokens: 50_000,
      capacityTokens: 2_000_000,
      tokenUsage: 0.625,
      throughput: 1234,
    };
    board.setLoad(slot, load, NOW);
    expect(board.load(slot, NOW + 5000)).toEqual({ load, ageMs: 5000 });
    const unknown = { waitingTokens: undefined, usedTokens: undefined, capacityTokens: undefined };
    const less = { running: 0, waiting: 0, ...unknown, tokenUsage: undefined, throughput: Number.NaN };
    board.setLoad(slot, less, NOW);
    expect(board.load(slot, NOW)).toEqual({ load: { ...less, throughput: undefined }, ageMs: 0 });
  });

  test("only what comes moves the time of the last progress", () => {
    const board = FleetBoard.create(2);
    const slot = board.claim();
    const last = (after: number) => board.lastProgress(slot, NOW + after) - NOW;
    board.book(slot, 0, 10, NOW);
    expect(board.lastProgress(slot, NOW + 5000)).toBe(0);
    board.begun(slot, 0, 10, NOW + 1000);
    expect([last(1000), last(1099), last(60_000)]).toEqual([1000, 1000, 1000]);
    board.release(slot, 0, 10, true);
    board.book(slot, 1, 0, NOW + 9000);
    expect(last(9000)).toBe(1000);
    board.progress(slot, 1, NOW + 9500);
    board.progress(slot, 0, NOW + 9300);
    expect(last(20_000)).toBe(9500);
    board.free(slot);
    const next = board.claim();
    board.book(next, 0, 0, NOW + 30_000);
    expect(board.lastProgress(next, NOW + 30_000)).toBe(0);
  });

  test("silence begins when it has something to do, and ends with everything that comes", () => {
    const board = FleetBoard.create(2);
    const slot = board.claim();
    const silent = (after: number) => board.silentMs(slot, NOW + after);
    expect(silent(0)).toBe(0);
    board.book(slot, 0, 0, NOW);
    expect([silent(0), silent(30_000)]).toEqual([0, 30_000]);
    board.book(slot, 1, 0, NOW + 20_000); // does not hide that the first one waits
    expect(silent(30_000)).toBe(30_000);
    board.begun(slot, 1, 0, NOW + 25_000);
    expect(silent(30_000)).toBe(5000);
    board.progress(slot, 0, NOW + 29_000);
    expect(silent(30_000)).toBe(1000);
    board.release(slot, 0);
    board.release(slot, 1, 0, true);
    expect(silent(3_600_000)).toBe(0);
    board.book(slot, 0, 0, NOW + 3_600_000);
    expect(silent(3_601_000)).toBe(1000);
  });

  test("is avoided for a while", () => {
    const board = FleetBoard.create(1);
    const slot = board.claim();
    board.avoid(slot, 1000, NOW);
    expect([0, 900, 1000, 5000, 86_400_000].map((after) => board.isAvoided(slot, NOW + after))).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

describe("the slot of a worker that has left", () => {
  test("books nothing, and leaves the next worker of the row alone", () => {
    const board = FleetBoard.create(2);
    const old = board.claim();
    board.book(old, 0, 10);
    board.book(old, 1, 10);
    board.avoid(old, 1000);
    board.free(old);
    board.free(old);
    const next = board.claim();
    const untouched = () => {
      expect([board.running(next), board.queuedTokens(next), board.begunCount(next)]).toEqual([0, 0, 0]);
      expect([board.state(next), board.isAvoided(next), board.silentMs(next)]).toEqual([
        WorkerState.starting,
        false,
        0,
      ]);
      expect([board.load(next), board.breaker.state(next)]).toEqual([undefined, "closed"]);
      expect([board.state(old), board.bookings()]).toEqual([WorkerState.absent, 0]);
    };
    untouched();
    expect(board.book(old, 0)).toBe(false);
    board.release(old, 1, 10);
    board.begun(old, 1, 10);
    board.progress(old, 1);
    board.setState(old, WorkerState.ready);
    board.setLoad(old, { running: 1, waiting: 1, ...NOTHING });
    board.avoid(old, 1000);
    untouched();
    expect(board.book(next, 1, 7)).toBe(true);
    board.release(old, 1, 10);
    board.free(old);
    expect([board.running(next), board.queuedTokens(next), board.bookings()]).toEqual([1, 7, 1]);
  });

  const NOTHING = {
    waitingTokens: undefined,
    usedTokens: undefined,
    capacityTokens: undefined,
    tokenUsage: undefined,
    throughput: undefined,
  };

  test("is never that of another one: 10,000 workers come and go", () => {
    const board = FleetBoard.create(1);
    const stays = board.claim();
    board.book(stays, 0);
    const seen = new Set<number>();
    for (let i = 0; i < 10_000; i++) {
      const slot = board.claim();
      seen.add(slot);
      board.setState(slot, WorkerState.ready);
      board.book(slot, 0, 5);
      if (i % 2 === 0) board.release(slot, 0, 5);
      board.free(slot);
    }
    expect(seen.size).toBe(10_000);
    expect([board.bookings(), board.running(stays)]).toEqual([1, 1]);
  });
});
