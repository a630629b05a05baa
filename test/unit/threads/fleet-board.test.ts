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
  board.setState(first, WorkerState.absent);
  expect(board.claim()).toBe(first);
  expect(board.claim()).toBe(second + 1);
});

test.each([0, -1, MAX_THREADS + 1])("%d threads are refused", (threads) => {
  expect(() => FleetBoard.create(threads)).toThrow(RangeError);
});
