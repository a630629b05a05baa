/** Workers of whose requests nothing comes; time is the test's. */
import { describe, expect, test } from "bun:test";
import { watchProgress } from "../../../src/fleet/progress.ts";
import { WorkerState } from "../../../src/threads/fleet-board.ts";
import { A, lifeWorld, rank } from "./life-world.ts";

const STALL = 30_000;

async function busyWorld() {
  const world = lifeWorld({ settings: { intervalMs: 3_600_000 } });
  const { board, clock, registry, log } = world;
  const record = registry.own({ url: A }, "test");
  await clock.pass(10);
  const monitor = watchProgress(() => registry.everyone(), board, STALL, clock, log);
  board.book(record.slot, 0, 0, clock.now());
  return {
    ...world,
    record,
    its: world.script(A),
    monitor,
    progress: () => board.progress(record.slot, 0, clock.now()),
    begun: () => board.begun(record.slot, 0, 0, clock.now()),
  };
}

describe("a worker that does not move", () => {
  test("and does not answer is taken out at once, and its requests are told", async () => {
    const { clock, board, record, its, lost } = await busyWorld();
    its.problem = "no answer in time";
    await clock.pass(STALL - 1000);
    expect([record.status, its.asked]).toEqual(["ready", 1]);
    await clock.pass(12_000); // the first look comes after ten seconds
    expect([record.status, board.state(record.slot), lost]).toEqual([
      "not_ready",
      WorkerState.unhealthy,
      [record.slot],
    ]);
  });

  test("but answers, and runs nothing or does not tell, stays", async () => {
    const { clock, record, its, lost } = await busyWorld();
    its.loads = [rank()];
    await clock.pass(5 * STALL);
    expect(its.asked).toBeGreaterThan(3);
    its.loads = undefined;
    await clock.pass(5 * STALL);
    expect([record.status, lost]).toEqual(["ready", []]);
  });

  test("but answers, and says twice that it runs the same, is taken out", async () => {
    const { clock, record, its } = await busyWorld();
    its.loads = [rank({ running: 1, usedTokens: 100 })];
    await clock.pass(STALL + 12_000);
    expect(record.status).toBe("ready");
    its.loads = [rank({ running: 1, usedTokens: 200 })]; // a long prompt goes on
    await clock.pass(STALL + 1000);
    expect(record.status).toBe("ready");
    await clock.pass(STALL + 1000);
    expect(record.status).toBe("not_ready");
  });

  test("is kept out longer each time, and is forgiven when it moves", async () => {
    const { clock, record, its, progress } = await busyWorld();
    its.loads = [rank({ running: 1 })];
    await clock.pass(2 * STALL + 15_000);
    expect(record.status).toBe("not_ready");
    await clock.pass(10 * STALL); // it still does not move
    expect(record.status).toBe("not_ready");
    progress();
    await clock.pass(15_000);
    expect(record.status).toBe("ready");
  });
});

test("new requests after an idle moment forgive nothing: one that answers and does not move stays out longer each time", async () => {
  const { clock, board, record, its } = await busyWorld();
  its.loads = [rank({ running: 1 })];
  /** Sends it a request whenever it has none, and takes it back when it is out, as other workers then get it. */
  let [isBooked, outMs] = [true, 0];
  const outs: number[] = [];
  for (let i = 0; i < 1000; i++) {
    await clock.pass(1000);
    const isOut = record.status === "not_ready";
    if (isOut) outMs += 1000;
    else if (outMs > 0) {
      outs.push(outMs);
      outMs = 0;
    }
    if (isOut === isBooked) {
      if (isOut) board.release(record.slot, 0);
      else board.book(record.slot, 0, 0, clock.now());
      isBooked = !isOut;
    }
  }
  expect(outs.length).toBeGreaterThan(2);
  for (const [i, ms] of outs.entries()) if (i > 0) expect(ms).toBeGreaterThan(1.5 * outs[i - 1]!);
});

test("new requests at once, while it is out, do not let it return", async () => {
  const { clock, board, record, its } = await busyWorld();
  its.loads = [rank({ running: 1 })];
  await clock.pass(2 * STALL + 15_000);
  expect(record.status).toBe("not_ready");
  board.release(record.slot, 0);
  board.book(record.slot, 0, 0, clock.now()); // before anybody looks
  await clock.pass(15_000);
  expect(record.status).toBe("not_ready");
});

test("a worker that moves is not examined, however long its requests take", async () => {
  const { clock, record, its, begun, progress } = await busyWorld();
  begun();
  for (let i = 0; i < 20; i++) {
    await clock.pass(STALL / 2);
    progress();
  }
  expect([record.status, its.asked]).toEqual(["ready", 1]);
});

test("a worker that somebody could not reach is checked at once", async () => {
  const { clock, board, record, its } = await busyWorld();
  await clock.pass(10_000);
  its.problem = "gone";
  board.avoid(record.slot, 1500, clock.now());
  await clock.pass(1200);
  expect(its.asked).toBe(2);
  await clock.pass(15_000);
  expect(record.status).toBe("not_ready");
});

test("without requests there is a look every ten seconds, and none after the end", async () => {
  const { clock, board, record, monitor, registry } = await busyWorld();
  board.release(record.slot, 0);
  await clock.pass(60_000);
  let fired = 0;
  const after = clock.after.bind(clock);
  clock.after = (ms, run) => {
    fired++;
    return after(ms, run);
  };
  await clock.pass(60_000);
  expect(fired).toBe(6);
  monitor.close();
  registry.close();
  expect(clock.waits).toBe(0);
});
