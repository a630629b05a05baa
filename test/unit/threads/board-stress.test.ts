/** Four threads at the boards at once, one of them killed in the middle, while workers come and go. */
import { afterEach, expect, test } from "bun:test";
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { LimitBoard } from "../../../src/threads/limit-board.ts";
import { random } from "../generation/random.ts";
import { loadRecord, PERMITS, Shared, type StressTask, WORKERS } from "./stress-worker.ts";

const THREADS = 4;
const VICTIM = 2;
const RUN_MS = 400;

const running = new Set<Worker>();
afterEach(() => {
  for (const worker of running) worker.terminate();
  running.clear();
});

test("counts, loads, breakers and permits hold, whatever comes in between", async () => {
  // `rate` is below what the threads report, so that breakers open all the time
  const rules = { failures: 5, rate: 0.3, successes: 2, timeoutMs: 100, windowMs: 1000 };
  const fleet = FleetBoard.create(THREADS, rules);
  const limits = LimitBoard.create(THREADS, {
    running: PERMITS,
    waiting: 0,
    retriesPerRequest: 0,
    retriesPerSec: 0,
  });
  const cells = new Int32Array(new SharedArrayBuffer(Shared.SIZE * 4));
  const { below } = random(7);
  const slotOf = (i: number) => Atomics.load(cells, Shared.slots + i);
  let records = 0;
  const report = (slot: number) => fleet.setLoad(slot, loadRecord(++records, slot));
  const come = (i: number) => {
    const slot = fleet.claim();
    report(slot);
    fleet.setState(slot, WorkerState.ready);
    Atomics.store(cells, Shared.slots + i, slot);
  };
  for (let i = 0; i < WORKERS; i++) come(i);

  const start = (thread: number, seed: number) => {
    const worker = new Worker(new URL("./stress-worker.ts", import.meta.url));
    running.add(worker);
    const { memory } = fleet;
    const task: StressTask = {
      fleet: memory,
      limits: limits.memory,
      shared: cells.buffer as SharedArrayBuffer,
      thread,
      seed,
    };
    worker.postMessage(task);
    return worker;
  };
  const workers = Array.from({ length: THREADS }, (_, thread) => start(thread, thread + 1));

  /** Control's part meanwhile: reports, and every now and then another worker in the place of one. */
  let replaced = 0;
  const work = async (ms: number) => {
    for (const until = Date.now() + ms; Date.now() < until; await Bun.sleep(0)) {
      for (let n = 0; n < 50; n++) report(slotOf(below(WORKERS)));
      if (below(4) !== 0) continue;
      const i = below(WORKERS);
      fleet.free(slotOf(i));
      come(i);
      replaced++;
    }
  };
  const halt = async (alive: number, flag = 1) => {
    Atomics.store(cells, Shared.halted, 0);
    Atomics.store(cells, Shared.flag, flag);
    for (const began = Date.now(); Atomics.load(cells, Shared.halted) < alive; await Bun.sleep(1))
      if (Date.now() - began > 10_000) throw new Error("the threads do not halt");
  };
  const resume = () => {
    Atomics.store(cells, Shared.flag, 0);
    Atomics.notify(cells, Shared.flag);
  };
  const account = (thread: number, at: number) => Atomics.load(cells, Shared.accounts + thread * Shared.ACCOUNT + at);
  /** What the threads say against what the board says. */
  const compare = (alive: readonly number[]) => {
    const said = (at: number) => alive.reduce((sum, thread) => sum + account(thread, at), 0);
    for (let i = 0; i < WORKERS; i++) {
      const slot = slotOf(i);
      for (const thread of alive) expect(account(thread, 4 + i * 4)).toBe(slot);
      const counts = [fleet.running(slot), fleet.begunCount(slot), fleet.queuedTokens(slot)];
      expect(counts).toEqual([1, 2, 3].map((part) => said(4 + i * 4 + part)));
    }
    expect(limits.runningCount()).toBe(said(0));
    expect(Atomics.load(cells, Shared.wrong)).toBe(0);
  };
  const all = [0, 1, 2, 3];
  const survivors = all.filter((thread) => thread !== VICTIM);

  for (let round = 0; round < 3; round++) {
    await work(RUN_MS);
    await halt(THREADS);
    compare(all);
    resume();
    await work(below(20));

    const victim = workers[VICTIM]!;
    const died = new Promise((resolve) => victim.addEventListener("close", resolve));
    victim.terminate();
    await died;
    running.delete(victim);
    Atomics.or(cells, Shared.dead, 1 << VICTIM);
    fleet.forgetThread(VICTIM);
    limits.forgetThread(VICTIM);
    await work(RUN_MS / 2);
    await halt(survivors.length);
    compare(survivors);
    for (let i = 0; i < 32; i++) {
      if ((Atomics.load(cells, Shared.probing + i) & 255) === VICTIM + 1) Atomics.store(cells, Shared.probing + i, 0);
      Atomics.compareExchange(cells, Shared.running + i, VICTIM + 1, 0);
    }
    Atomics.and(cells, Shared.dead, ~(1 << VICTIM));
    workers[VICTIM] = start(VICTIM, 100 + round);
    resume();
  }

  await work(RUN_MS);
  await halt(THREADS, 2);
  compare(all);
  for (let i = 0; i < WORKERS; i++) expect(fleet.running(slotOf(i))).toBe(0);
  expect([fleet.bookings(), limits.runningCount()]).toEqual([0, 0]);
  expect(replaced).toBeGreaterThan(20);
  for (const [what, least] of [
    [1, 1000],
    [2, 5],
    [3, 1000],
  ] as const)
    expect(survivors.reduce((sum, thread) => sum + account(thread, what), 0)).toBeGreaterThan(least);
}, 60_000);
