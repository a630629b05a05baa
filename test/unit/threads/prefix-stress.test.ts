/** Three threads and control at the prefix index at once; threads are killed in the middle, and caches come, go and begin anew. */
import { afterEach, expect, test } from "bun:test";
import { PrefixBoard } from "../../../src/threads/prefix-board.ts";
import { TestCaches } from "../../support/prefix.ts";
import { random } from "../generation/random.ts";
import { BLOCKS, CACHES, CHAINS, due, Flag, most, type PrefixTask, Shared, stressChains } from "./prefix-worker.ts";

const THREADS = 3;
const VICTIM = 1;
const RUN_MS = 300;

const running = new Set<Worker>();
afterEach(() => {
  for (const worker of running) worker.terminate();
  running.clear();
});

function stress(megabytes: number, seed: number) {
  const board = PrefixBoard.create(THREADS, megabytes);
  const writer = board.writer();
  const reader = board.reader(0); // to look with only: the number is a thread's
  const cells = new Int32Array(new SharedArrayBuffer(Shared.SIZE * 4));
  const { below } = random(seed);
  const caches = new TestCaches(writer);
  /** Blocks that each cache told of, by prompt. */
  const told = Array.from({ length: CACHES }, () => new Map<number, number>());
  const memberOf = (cache: number) => cells[Shared.members + cache]!;
  const come = (cache: number) => {
    told[cache]!.clear();
    Atomics.store(cells, Shared.members + cache, writer.claim(cache, 0));
  };
  for (let cache = 0; cache < CACHES; cache++) come(cache);

  const start = (thread: number, from: number) => {
    const worker = new Worker(new URL("./prefix-worker.ts", import.meta.url));
    running.add(worker);
    const task: PrefixTask = { board: board.memory, shared: cells.buffer as SharedArrayBuffer, thread, seed: from };
    worker.postMessage(task);
    return worker;
  };
  const workers = Array.from({ length: THREADS }, (_, thread) => start(thread, seed * 10 + thread));

  const tell = (chain: number, cache: number, count: number) => {
    const before = told[cache]!.get(chain) ?? 0;
    if (before < count) told[cache]!.set(chain, caches.tell(stressChains[chain]!, memberOf(cache), before, count));
  };
  const untell = (chain: number, cache: number, count: number) => {
    let left = told[cache]!.get(chain) ?? 0;
    // where it is not known the lock was not to be had, or the block was thrown out: then it is gone as well
    for (; left > count; left--)
      if (!caches.untell(stressChains[chain]!, memberOf(cache), left - 1) && megabytes >= 1) break;
    told[cache]!.set(chain, left);
  };

  return {
    board,
    writer,
    cells,
    /** Control's part, for a while. */
    async work(ms: number) {
      for (const until = Date.now() + ms; Date.now() < until; await Bun.sleep(0))
        for (let n = 0; n < 20; n++) {
          const chain = below(CHAINS);
          const cache = below(CACHES);
          const what = below(100);
          if (what < 60) tell(chain, cache, below(most(chain, cache) + 1));
          else if (what < 85) untell(chain, cache, below(BLOCKS));
          else if (what < 95) writer.sweep(below(4000), Date.now());
          else if (what < 98) {
            told[cache]!.clear();
            caches.clear(memberOf(cache));
          } else {
            caches.release(memberOf(cache));
            come(cache);
          }
        }
    },
    async halt(flag: number, alive = THREADS) {
      Atomics.store(cells, Shared.halted, 0);
      Atomics.store(cells, Shared.flag, flag);
      Atomics.notify(cells, Shared.flag);
      for (const began = Date.now(); Atomics.load(cells, Shared.halted) < alive; await Bun.sleep(1))
        if (Date.now() - began > 10_000) throw new Error("the threads do not halt");
    },
    resume() {
      Atomics.store(cells, Shared.flag, Flag.run);
      Atomics.notify(cells, Shared.flag);
    },
    async kill(from: number) {
      const victim = workers[VICTIM]!;
      const died = new Promise((resolve) => victim.addEventListener("close", resolve));
      victim.terminate();
      await died;
      running.delete(victim);
      board.forgetThread(VICTIM);
      workers[VICTIM] = start(VICTIM, from);
    },
    clearAll() {
      for (let cache = 0; cache < CACHES; cache++) {
        told[cache]!.clear();
        caches.clear(memberOf(cache));
      }
    },
    tell,
    toldOf: (chain: number, cache: number) => told[cache]!.get(chain) ?? 0,
    look: (chain: number) => {
      const match = reader.match(stressChains[chain]!);
      return Array.from({ length: CACHES }, (_, cache) => ({
        depth: match.depth(memberOf(cache)),
        isExact: match.isExact(memberOf(cache)),
      }));
    },
  };
}

test("with room for all: nothing is ever wrong, and at rest everything is as it was written", async () => {
  const world = stress(16, 1);
  const { cells } = world;
  const isEnough = () => Atomics.load(cells, Shared.found) > 1000 && Atomics.load(cells, Shared.promised) > 100;
  for (let round = 0; round < 3 || !isEnough(); round++) {
    await world.work(RUN_MS);
    await world.kill(500 + round);
    await world.work(RUN_MS);

    await world.halt(Flag.halt);
    for (let chain = 0; chain < CHAINS; chain++)
      for (const [cache, { depth }] of world.look(chain).entries()) {
        expect(depth).toBeGreaterThanOrEqual(world.toldOf(chain, cache));
        expect(depth).toBeLessThanOrEqual(most(chain, cache));
      }

    world.clearAll();
    const working = world.halt(Flag.work);
    for (let chain = 0; chain < CHAINS; chain += 3)
      for (let cache = 0; cache < CACHES; cache += 2) world.tell(chain, cache, most(chain, cache) >> 1);
    await working;
    for (let chain = 0; chain < CHAINS; chain++)
      for (const [cache, found] of world.look(chain).entries()) {
        const promised = Math.max(...[0, 1, 2].map((thread) => due(thread, chain, cache)));
        const told = world.toldOf(chain, cache);
        expect(found.depth).toBe(Math.max(promised, told));
        expect(found.isExact).toBe(told > 0 && told >= promised);
      }
    expect(Atomics.load(cells, Shared.wrong)).toBe(0);
    world.resume();
  }
  expect(world.writer.stats()).toMatchObject({ evicted: 0 });
}, 60_000);

test("with room for a third: blocks and sets are thrown out all the time, and nothing is ever wrong", async () => {
  const world = stress(0.03, 2);
  const isEnough = () => Atomics.load(world.cells, Shared.found) > 1000 && world.writer.stats().evicted > 1000;
  for (let round = 0; round < 3 || !isEnough(); round++) {
    await world.work(RUN_MS);
    await world.kill(700 + round);
  }
  await world.work(RUN_MS);
  await world.halt(Flag.halt);
  for (let chain = 0; chain < CHAINS; chain++)
    for (const [cache, { depth }] of world.look(chain).entries()) expect(depth).toBeLessThanOrEqual(most(chain, cache));
  expect(Atomics.load(world.cells, Shared.wrong)).toBe(0);
  expect(world.writer.stats().blocks).toBeLessThanOrEqual(world.board.capacity);
}, 60_000);
