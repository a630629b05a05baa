import { expect, test } from "bun:test";
import { watchLoads } from "../../../src/fleet/loads-monitor.ts";
import { sumOf, tellLoads, tellRankLoad } from "../../../src/fleet/rank-loads.ts";
import { A, B, lifeWorld, rank } from "./life-world.ts";

const EVERY = 10_000;

test("busy workers are asked each time, idle ones rarely, those without loads once", async () => {
  const { clock, board, registry, script } = lifeWorld({ settings: { intervalMs: 36_000_000 } });
  const [busy, mute] = [registry.own({ url: A }, "test"), registry.own({ url: B }, "test")];
  await clock.pass(10);
  const its = script(A);
  its.loads = [rank({ running: 1, tokenUsage: 0.5 }), rank({ rank: 1, waiting: 2 })];
  board.book(busy.slot, 0, 0, clock.now());
  board.book(mute.slot, 0, 0, clock.now());
  const monitor = watchLoads(() => registry.everyone(), board, EVERY, clock);
  await clock.pass(3 * EVERY);
  expect(its.askedLoads).toBe(3);
  expect(script(B).askedLoads).toBe(1);
  expect(board.load(busy.slot)?.load).toMatchObject({ running: 1, waiting: 2, tokenUsage: undefined });
  board.release(busy.slot, 0);
  its.loads = [rank()];
  await clock.pass(12 * EVERY);
  expect(its.askedLoads).toBe(5);
  expect(board.load(busy.slot)?.load.running).toBe(0);
  registry.remove(busy.id);
  await clock.pass(12 * EVERY);
  expect(its.askedLoads).toBe(5);
  monitor.close();
  registry.close();
  await clock.pass(10_000);
  expect(clock.waits).toBe(0);
});

test("what one rank does not tell is not told of the worker", () => {
  const full = rank({ running: 1, usedTokens: 10, capacityTokens: 100, tokenUsage: 0.1, throughput: 5 });
  expect(sumOf([full, full])).toEqual({
    running: 2,
    waiting: 0,
    waitingTokens: undefined,
    usedTokens: 20,
    capacityTokens: 200,
    tokenUsage: 0.1,
    throughput: 10,
  });
  expect(sumOf([full, rank()])).toMatchObject({ running: 1, usedTokens: undefined, tokenUsage: undefined });
});

test("each rank that is chosen by itself has the load that it told; what it leaves out is as before", async () => {
  const { clock, board, registry } = lifeWorld();
  const record = registry.own({ url: A }, "test");
  await clock.pass(10);
  const second = board.claim();
  record.rankSlots = [second];
  tellLoads(
    record,
    [rank({ running: 1, capacityTokens: 1000 }), rank({ rank: 1, running: 5 }), rank({ rank: 9 })],
    board,
  );
  expect([board.load(record.slot)?.load.running, board.load(second)?.load.running]).toEqual([1, 5]);
  tellRankLoad(record, rank({ running: 2, tokenUsage: 0.5 }), board, clock.now());
  expect(board.load(record.slot)?.load).toMatchObject({ running: 2, capacityTokens: 1000, usedTokens: 500 });
  expect(board.load(second)?.load.running).toBe(5);
  expect([record.loads?.map((load) => load.running), record.loadToldAt]).toEqual([[2, 5, 0], clock.now()]);
  registry.close();
});

test("a worker that tells of its load without being asked is not asked", async () => {
  const { clock, board, registry, script } = lifeWorld({ settings: { intervalMs: 36_000_000 } });
  const record = registry.own({ url: A }, "test");
  await clock.pass(10);
  script(A).loads = [rank()];
  board.book(record.slot, 0, 0, clock.now());
  const monitor = watchLoads(() => registry.everyone(), board, EVERY, clock);
  for (let i = 0; i < 5; i++) {
    tellRankLoad(record, rank({ running: 1 }), board, clock.now());
    await clock.pass(EVERY / 2);
  }
  expect(script(A).askedLoads).toBe(0);
  await clock.pass(2 * EVERY);
  expect(script(A).askedLoads).toBeGreaterThan(0);
  monitor.close();
  registry.close();
});
