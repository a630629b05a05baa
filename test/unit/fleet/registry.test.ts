/** Who is in the fleet: by what several sources tell, and by what operators do. */
import { describe, expect, test } from "bun:test";
import { InvalidRequestError, WorkerExistsError, WorkerNotFoundError } from "../../../src/errors.ts";
import { isKeyless, parseSpec } from "../../../src/fleet/spec-json.ts";
import type { DiscoveredWorker } from "../../../src/fleet/worker-source.ts";
import type { WorkerSpec } from "../../../src/fleet/worker-spec.ts";
import { WorkerState } from "../../../src/threads/fleet-board.ts";
import { A, B, lifeWorld } from "./life-world.ts";

const told = (...urls: string[]): DiscoveredWorker[] => urls.map((url) => ({ key: url, spec: { url } }));

describe("sources", () => {
  test("a worker that two tell of is one, and leaves with the last of them", async () => {
    const { clock, registry, sources, known } = lifeWorld();
    const [one, other] = [sources.sink("file"), sources.sink("dns")];
    one.replace(told(A, B));
    other.replace(told("GRPC://10.0.0.1:50051/"));
    await clock.pass(10);
    expect(known()).toEqual([`${A} served`, `${B} served`]);
    one.replace(told(B));
    await clock.pass(100);
    expect(registry.at(A)?.owners).toEqual(new Set(["dns GRPC://10.0.0.1:50051/"]));
    other.replace([]);
    await clock.pass(100);
    expect(known()).toEqual([`${B} served`]);
  });

  test("another pod at the same address is another worker", async () => {
    const { clock, board, registry, sources } = lifeWorld();
    const pods = sources.sink("kubernetes");
    pods.replace([{ key: "uid-1", spec: { url: A } }]);
    await clock.pass(10);
    const first = registry.at(A);
    pods.replace([{ key: "uid-2", spec: { url: A } }]);
    await clock.pass(100);
    expect(registry.at(A)?.id).not.toBe(first?.id);
    expect([registry.list().length, registry.at(A)?.status]).toEqual([1, "ready"]);
    expect(board.state(first?.slot ?? -1)).toBe(WorkerState.absent);
  });

  test("what was done by hand holds until the source says something else", async () => {
    const { clock, registry, sources } = lifeWorld();
    const file = sources.sink("file");
    file.replace(told(A, B));
    await clock.pass(10);
    registry.remove(registry.at(A)!.id);
    registry.patch(registry.at(B)!.id, { priority: 7 });
    file.replace(told(A, B));
    await clock.pass(10);
    expect(registry.list().map(({ spec }) => [spec.url, spec.priority])).toEqual([[B, 7]]);
    file.replace([...told(A), { key: B, spec: { url: B, priority: 9 } }]);
    file.replace(told(B));
    file.replace(told(A, B));
    await clock.pass(1000);
    expect(registry.list().map(({ spec }) => [spec.url, spec.priority])).toEqual([
      [B, undefined],
      [A, undefined],
    ]);
  });

  test("one that was removed since it failed comes again when it is told of again", async () => {
    const { clock, registry, sources, script } = lifeWorld({ removesFailed: true });
    const dns = sources.sink("dns");
    dns.replace(told(A));
    await clock.pass(10);
    script(A).problem = "gone";
    await clock.pass(200_000);
    expect(registry.list()).toEqual([]);
    script(A).problem = undefined;
    dns.replace(told(A));
    await clock.pass(10);
    expect(registry.at(A)?.status).toBe("ready");
  });

  test("an address that is none costs itself only, and a problem is told once", () => {
    const { registry, sources, lines } = lifeWorld();
    const file = sources.sink("file");
    file.replace(told("nonsense://", A));
    expect(registry.list().map(({ spec }) => spec.url)).toEqual([A]);
    file.problem(new Error("cannot be read"));
    file.problem(new Error("cannot be read"));
    expect(lines.filter((line) => line.includes("cannot be read"))).toHaveLength(1);
    expect(registry.list()).toHaveLength(1);
  });
});

describe("operators", () => {
  test("a replacement takes over when it is ready, under the same id; until then the old one serves", async () => {
    const { clock, board, admin, registry, script, known } = lifeWorld();
    const { id } = await admin.addWorker({ url: A });
    await clock.pass(10);
    const before = registry.get(id);
    const its = script(A);
    its.problem = "loading";
    its.model = "other";
    await admin.replaceWorker(id, { url: A, priority: 3 });
    await clock.pass(1000);
    expect(await admin.worker(id)).toMatchObject({
      status: "ready",
      spec: { url: A },
      job: { job_type: "UpdateWorker", status: "processing", message: "loading" },
    });
    expect([known(), board.state(before.slot)]).toEqual([[`${A} served`], WorkerState.ready]);
    its.problem = undefined;
    await clock.pass(2000);
    const after = await admin.worker(id);
    expect(after).toMatchObject({ status: "ready", spec: { url: A, priority: 3 }, models: ["other"], job: undefined });
    expect([known(), board.state(before.slot)]).toEqual([[`${A} other`], WorkerState.absent]);
  });

  test("a replacement that never becomes ready is given up, and the old one stays", async () => {
    const { clock, board, admin, registry, script } = lifeWorld();
    const { id } = await admin.addWorker({ url: A });
    await clock.pass(10);
    const before = registry.get(id);
    let isNew = false;
    const its = script(A);
    Object.defineProperty(its, "model", {
      get: () => {
        if (isNew) throw new Error("no such model");
        return "served";
      },
    });
    isNew = true;
    await admin.replaceWorker(id, { url: A });
    await clock.pass(70_000);
    expect(registry.get(id)).toBe(before);
    expect(await admin.worker(id)).toMatchObject({
      status: "ready",
      job: { status: "failed", message: "no such model" },
    });
    expect(board.state(before.slot)).toBe(WorkerState.ready);
    await clock.pass(400_000);
    expect((await admin.worker(id)).job).toBeUndefined(); // kept for five minutes
  });

  test("a replacement keeps the key, which is never shown, unless it has another one or is to have none", async () => {
    const { clock, admin, registry, script } = lifeWorld();
    const { id } = await admin.addWorker({ url: A, apiKey: "first" });
    const keyAfter = async (...[spec, keyless]: [WorkerSpec, boolean?]) => {
      await admin.replaceWorker(id, spec, keyless);
      await clock.pass(10);
      return registry.get(id).spec.apiKey;
    };
    await clock.pass(10);
    const { spec: shown } = await admin.worker(id);
    expect(shown.apiKey).toBeUndefined();
    expect(await keyAfter(shown)).toBe("first");
    expect(await keyAfter({ url: A, apiKey: "second" })).toBe("second");
    script(A).problem = "loading"; // so that the next one does not take over
    await admin.replaceWorker(id, { url: A, apiKey: "third" });
    script(A).problem = undefined;
    expect(await keyAfter({ url: A, priority: 1 })).toBe("third");
    expect(await keyAfter(parseSpec({ url: A, api_key: null }), isKeyless({ url: A, api_key: null }))).toBeUndefined();
    expect(isKeyless({ url: A })).toBe(false);
  });

  test("labels and health settings are changed in place, a key by a replacement", async () => {
    const { clock, admin, registry, workers } = lifeWorld();
    const { id } = await admin.addWorker({ url: A, labels: { zone: "a" } });
    await clock.pass(10);
    const { slot } = registry.get(id);
    await admin.patchWorker(id, { labels: { rack: "2" }, cost: 2, health: { failureThreshold: 1 } });
    expect(workers()).toMatchObject([{ labels: { rack: "2" }, cost: 2 }]); // threads choose by them
    expect(registry.get(id)).toMatchObject({ slot, spec: { cost: 2, labels: { zone: "a", rack: "2" } } });
    await admin.patchWorker(id, { apiKey: "secret" });
    await clock.pass(100);
    expect(registry.get(id).slot).not.toBe(slot);
    expect(JSON.stringify(await admin.worker(id))).not.toContain("secret");
  });

  test("what cannot be done says why", async () => {
    const { admin, clock, registry } = lifeWorld();
    const { id } = await admin.addWorker({ url: "10.0.0.1:50051" });
    await expect(admin.addWorker({ url: A })).rejects.toBeInstanceOf(WorkerExistsError);
    await expect(admin.addWorker({ url: "grpc://" })).rejects.toBeInstanceOf(InvalidRequestError);
    await expect(admin.replaceWorker(id, { url: B })).rejects.toBeInstanceOf(InvalidRequestError);
    for (const unknown of [admin.worker("x"), admin.removeWorker("x"), admin.patchWorker("x", {})])
      await expect(unknown).rejects.toBeInstanceOf(WorkerNotFoundError);
    registry.remove(id);
    await clock.pass(100);
    await expect(admin.worker(id)).rejects.toBeInstanceOf(WorkerNotFoundError);
  });
});

describe("leaving", () => {
  async function leaving(drainMs = 10_000) {
    const world = lifeWorld({ drainMs });
    const record = world.registry.own({ url: A }, "test");
    await world.clock.pass(10);
    world.board.book(record.slot, 0);
    world.registry.remove(record.id);
    return { ...world, record };
  }

  test("it gets nothing new, and goes when its requests are done", async () => {
    const { clock, board, record, jobs, known, registry, script } = await leaving();
    await clock.pass(5000);
    expect([board.state(record.slot), known(), registry.list()]).toEqual([WorkerState.draining, [`${A} served`], []]);
    expect(jobs.of(record.id)).toMatchObject({ job_type: "RemoveWorker", status: "pending" });
    board.release(record.slot, 0);
    await clock.pass(2000);
    expect([board.state(record.slot), known()]).toEqual([WorkerState.absent, []]);
    expect([clock.waits, jobs.size, script(A).open]).toEqual([0, 0, 0]);
  });

  test("it is shown until then, and may be removed twice", async () => {
    const { clock, board, record, admin } = await leaving();
    const { id } = record;
    const shown = { id, status: "draining", load: 1, job: { job_type: "RemoveWorker" } };
    expect(await admin.listWorkers()).toMatchObject([shown]);
    expect(await admin.worker(id)).toMatchObject(shown);
    expect(await admin.removeWorker(id)).toMatchObject(shown);
    board.release(record.slot, 0);
    await clock.pass(2000);
    expect(await admin.listWorkers()).toEqual([]);
    await expect(admin.removeWorker(id)).rejects.toBeInstanceOf(WorkerNotFoundError);
  });

  test("after the deadline it goes, and its row is free when the threads have ended what was left", async () => {
    const { clock, board, record, known, lines } = await leaving(3000);
    await clock.pass(3500);
    expect([known(), board.state(record.slot)]).toEqual([[], WorkerState.draining]);
    expect(lines.join("")).toContain("its requests are ended worker=grpc://10.0.0.1:50051 requests=1");
    board.release(record.slot, 0);
    await clock.pass(2000);
    expect(board.state(record.slot)).toBe(WorkerState.absent);
  });

  test("its address may be taken again at once", async () => {
    const { clock, registry, known } = await leaving();
    registry.own({ url: A }, "test");
    await clock.pass(100);
    expect([registry.list().map(({ status }) => status), known()]).toEqual([["ready"], [`${A} served`, `${A} served`]]);
  });
});

test("ten thousand that come and go leave nothing", async () => {
  const { clock, board, registry, jobs, models, script } = lifeWorld();
  const free = (): number => {
    const claimed: number[] = [];
    for (;;) {
      try {
        claimed.push(board.claim());
      } catch {
        for (const slot of claimed) board.free(slot);
        return claimed.length;
      }
    }
  };
  const rows = free();
  for (let i = 0; i < 10_000; i++) {
    const url = `grpc://10.0.${i % 250}.1:${1000 + (i % 7)}`;
    script(url).model = `model-${i}`;
    if (i % 3 === 0) script(url).problem = "gone";
    const { id } = registry.own({ url }, "test");
    if (i % 5 !== 0) await clock.pass(1);
    registry.remove(id);
    if (i % 100 === 0) await clock.pass(500);
  }
  await clock.pass(60_000);
  expect([clock.waits, jobs.size, models.size, [...registry.everyone()].length]).toEqual([0, 0, 0, 0]);
  expect(free()).toBe(rows);
}, 30_000);

describe("the prefix index", () => {
  /** Members that are claimed, as `slot/rank`. */
  function membersWorld(dpAware: boolean, most = 100) {
    const claimed = new Map<number, string>();
    const cleared: number[] = [];
    let last = 0;
    const members = {
      claim(slot: number, rank: number) {
        if (claimed.size === most) throw new RangeError("too many");
        claimed.set(++last, `${slot}/${rank}`);
        return last;
      },
      release: (member: number) => void claimed.delete(member),
      clear: (member: number) => void cleared.push(member),
    };
    return { ...lifeWorld({ dpAware, members }), claimed, cleared };
  }

  test("has a number for each worker from its registration until it has left", async () => {
    const { clock, registry, script, board, claimed, cleared } = membersWorld(false);
    script(A).ranks = 4;
    const record = registry.own({ url: A }, "test");
    expect(claimed.size).toBe(0);
    await clock.pass(10);
    expect([...claimed.values()]).toEqual([`${record.slot}/0`]);
    expect([record.members, record.rankSlots]).toEqual([[1], undefined]);
    board.book(record.slot, 0);
    registry.remove(record.id);
    await clock.pass(10);
    expect([cleared, claimed.size]).toEqual([[1], 1]);
    board.release(record.slot, 0);
    await clock.pass(1000);
    expect(claimed.size).toBe(0);
    registry.close();
  });

  test("has one for each rank that is chosen by itself, which has a row of its own and leaves with the worker", async () => {
    const { clock, registry, script, board, lost, slots, claimed } = membersWorld(true);
    script(A).ranks = 3;
    const record = registry.own({ url: A }, "test");
    await clock.pass(10);
    const rows = [record.slot, ...(record.rankSlots ?? [])];
    expect(new Set(rows).size).toBe(3);
    expect([...claimed.values()]).toEqual(rows.map((slot, rank) => `${slot}/${rank}`));
    expect(slots()).toEqual(rows);
    expect(rows.map((slot) => board.state(slot))).toEqual([WorkerState.ready, WorkerState.ready, WorkerState.ready]);
    script(A).problem = "gone";
    await clock.pass(200_000);
    expect(lost.slice(0, 3)).toEqual(rows);
    expect(board.state(rows[2]!)).not.toBe(WorkerState.ready);
    board.book(rows[2]!, 0);
    registry.remove(record.id);
    await clock.pass(1000);
    expect(board.state(rows[0]!)).toBe(WorkerState.draining); // one of its ranks has a request
    board.release(rows[2]!, 0);
    await clock.pass(1000);
    expect(rows.map((slot) => board.state(slot))).toEqual([WorkerState.absent, WorkerState.absent, WorkerState.absent]);
    expect(claimed.size).toBe(0);
    registry.close();
  });

  test("has no room for all: the others serve without it, and nothing is kept of half a worker", async () => {
    const { clock, registry, script, lines, status, claimed } = membersWorld(true, 2);
    script(A).ranks = 3;
    registry.own({ url: A }, "test");
    await clock.pass(10);
    expect([status(), claimed.size]).toEqual([["ready"], 0]);
    expect(lines.filter((line) => line.includes("too many"))).toHaveLength(1);
    registry.close();
  });
});
