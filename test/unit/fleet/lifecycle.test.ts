/** How a worker becomes ready, is taken out, returns, and fails for good; time is the test's. */
import { describe, expect, test } from "bun:test";
import { WorkerState } from "../../../src/threads/fleet-board.ts";
import { A, lifeWorld } from "./life-world.ts";

const CHECK = 5000;

async function readyWorld(options: Parameters<typeof lifeWorld>[0] = {}) {
  const world = lifeWorld(options);
  const record = world.registry.own({ url: A }, "test");
  await world.clock.pass(10);
  expect(record.status).toBe("ready");
  return { ...world, record, its: world.script(A) };
}

describe("at the start", () => {
  test("the first good answer makes it ready", async () => {
    const { board, record, known } = await readyWorld();
    expect(board.state(record.slot)).toBe(WorkerState.ready);
    expect(known()).toEqual([`${A} served`]);
  });

  test("it is tried again, ever more rarely, as long as it takes", async () => {
    const world = lifeWorld();
    const its = world.script(A);
    its.problem = "not up yet";
    const record = world.registry.own({ url: A }, "test");
    await world.clock.pass(1000);
    expect(its.asked).toBe(5); // at 0, 0.1, 0.25, 0.475, 0.8125 s
    expect([record.status, world.jobs.of(record.id)?.message]).toEqual(["pending", "not up yet"]);
    expect(world.board.state(record.slot)).toBe(WorkerState.starting);
    expect(world.lines.filter((line) => line.includes("not ready yet"))).toHaveLength(1); // not at each try
    its.problem = undefined;
    await world.clock.pass(1000);
    expect([record.status, world.jobs.of(record.id)]).toEqual(["ready", undefined]);
  });

  test("it fails when its time is up, is told so, and may still come", async () => {
    const world = lifeWorld();
    const its = world.script(A);
    its.problem = "no route";
    const record = world.registry.own({ url: A }, "test");
    await world.clock.pass(59_000);
    expect(record.status).toBe("pending");
    await world.clock.pass(10_000);
    expect([record.status, world.jobs.of(record.id)?.status]).toEqual(["failed", "failed"]);
    expect(world.jobs.of(record.id)?.message).toBe("no route");
    its.problem = undefined;
    await world.clock.pass(CHECK);
    expect(record.status).toBe("ready");
  });
});

describe("later", () => {
  test("one failed check changes nothing, three take it out, two good ones bring it back", async () => {
    const { clock, board, record, its, lost } = await readyWorld();
    its.problem = "slow";
    await clock.pass(60_000);
    expect([record.status, its.asked]).toEqual(["ready", 2]);
    its.problem = undefined;
    await clock.pass(CHECK);
    its.problem = "gone";
    await clock.pass(60_000 + CHECK);
    expect([record.status, lost]).toEqual(["ready", []]);
    await clock.pass(CHECK);
    expect([record.status, board.state(record.slot), lost]).toEqual([
      "not_ready",
      WorkerState.unhealthy,
      [record.slot],
    ]);
    its.problem = undefined;
    await clock.pass(CHECK);
    expect(record.status).toBe("not_ready");
    await clock.pass(CHECK);
    expect([record.status, board.state(record.slot)]).toEqual(["ready", WorkerState.ready]);
  });

  test("nine failed checks make it failed, and it stays in the fleet", async () => {
    const { clock, board, record, its, registry } = await readyWorld();
    its.problem = "gone";
    await clock.pass(60_000 + 7 * CHECK);
    expect(record.status).toBe("not_ready");
    await clock.pass(CHECK);
    expect([record.status, board.state(record.slot)]).toEqual(["failed", WorkerState.failed]);
    await clock.pass(600_000);
    expect(registry.list()).toEqual([record]);
    its.problem = undefined;
    await clock.pass(2 * CHECK);
    expect(record.status).toBe("ready");
  });

  test("with remove-unhealthy-workers it leaves then", async () => {
    const { clock, board, record, its, registry, known } = await readyWorld({ removesFailed: true });
    its.problem = "gone";
    await clock.pass(60_000 + 8 * CHECK + 100);
    expect([registry.list(), known(), board.state(record.slot)]).toEqual([[], [], WorkerState.absent]);
    expect(clock.waits).toBe(0);
  });

  test("a worker that is not watched stays ready", async () => {
    const { clock, record, its } = await readyWorld({ settings: { isUnwatched: true } });
    its.problem = "gone";
    await clock.pass(600_000);
    expect([record.status, its.asked]).toEqual(["ready", 1]);
  });

  test("an examination that cuts a check short is not held against it", async () => {
    const { clock, record, its } = await readyWorld({ settings: { thresholds: { failures: 1, successes: 1 } } });
    its.hangs = true;
    await clock.pass(60_000);
    its.hangs = false;
    expect(await record.life.examine()).toBeUndefined();
    await clock.pass(100);
    expect([record.status, its.open]).toEqual(["ready", 1]);
  });

  test("another engine at the address registers anew, with its own model", async () => {
    const { clock, board, record, its, registry, known, models } = await readyWorld();
    Object.assign(its, { identity: "2", model: "other" });
    await clock.pass(60_000 + 100);
    const [now] = registry.list();
    expect(now?.id).toBe(record.id);
    expect(now?.slot).not.toBe(record.slot);
    expect([now?.status, known()]).toEqual(["ready", [`${A} other`]]);
    expect([board.state(record.slot), [...models]]).toEqual([WorkerState.absent, ["other"]]);
    expect(its.open).toBe(1);
  });
});

describe("a lost connection", () => {
  test("takes it out, and one look that finds the same engine takes it in again", async () => {
    const { clock, board, record, its, lost } = await readyWorld();
    its.lose();
    expect([record.status, board.state(record.slot)]).toEqual(["not_ready", WorkerState.unhealthy]);
    await clock.pass(20);
    expect([record.status, board.state(record.slot), its.asked]).toEqual(["ready", WorkerState.ready, 2]);
    expect(lost).toEqual([]); // what runs there goes on
  });

  test("an engine that was started anew with other settings gets nothing before it has registered", async () => {
    const { clock, board, record, its, known, registry } = await readyWorld();
    its.model = "other";
    its.identity = "2";
    its.lose();
    expect(board.state(record.slot)).toBe(WorkerState.unhealthy);
    await clock.pass(20);
    expect(board.state(record.slot)).not.toBe(WorkerState.ready);
    expect(registry.list().map(({ status }) => status)).toEqual(["ready"]);
    expect(known()).toEqual([`${A} other`]);
  });

  test("an engine that is away for seconds is back with its first good answer, and what it had not begun goes elsewhere", async () => {
    const { clock, record, its, lost } = await readyWorld();
    its.problem = "refused";
    its.lose();
    await clock.pass(20);
    expect([record.status, lost]).toEqual(["not_ready", [record.slot]]);
    await clock.pass(3000);
    its.problem = undefined;
    await clock.pass(3000);
    expect([record.status, lost]).toEqual(["ready", [record.slot]]);
    its.lose(); // it was another engine's connection that was lost before
    expect(record.status).toBe("not_ready");
  });

  test("an engine that goes away while it registers is looked at soon, too", async () => {
    const world = lifeWorld();
    const its = world.script(A);
    const record = world.registry.own({ url: A }, "test");
    while (world.board.state(record.slot) !== WorkerState.ready) await Promise.resolve();
    its.problem = "refused";
    await world.clock.pass(1000);
    expect(record.status).toBe("not_ready");
    its.problem = undefined;
    its.identity = "2";
    await world.clock.pass(3000);
    expect(world.registry.list().map(({ status, found }) => [status, found?.identity])).toEqual([["ready", "2"]]);
  });

  test("one whose connections are closed over and over stays in, and is looked at as rarely as one in trouble", async () => {
    const { clock, record, its } = await readyWorld();
    its.lose();
    await clock.pass(20);
    const before = its.asked;
    for (let i = 0; i < 100; i++) {
      its.lose();
      expect(record.status).toBe("ready");
      await clock.pass(100);
    }
    expect([1, 2]).toContain(its.asked - before);
  });
});
