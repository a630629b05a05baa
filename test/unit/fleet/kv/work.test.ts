import { expect, test } from "bun:test";
import { type Work, workQueue } from "../../../../src/fleet/kv/work.ts";

test("works are done in order, in pieces, with time for others in between", async () => {
  let now = 0;
  const queue = workQueue(() => now);
  const done: string[] = [];
  const work = function* (name: string, pieces: number): Work {
    for (let i = 0; i < pieces; i++) {
      now += 0.5;
      done.push(`${name}${i}`);
      yield;
    }
  };
  queue.add(work("a", 6));
  queue.add(work("b", 2));
  const turns: number[] = [];
  const others = () => {
    turns.push(done.length);
    if (done.length < 8) setImmediate(others);
  };
  setImmediate(others);
  while (done.length < 8) await Bun.sleep(1);
  expect(done).toEqual(["a0", "a1", "a2", "a3", "a4", "a5", "b0", "b1"]);
  expect(turns.some((count) => count > 0 && count < 8)).toBe(true);
  queue.add(work("c", 3));
  queue.close();
  await Bun.sleep(5);
  expect(done).toHaveLength(8);
});

test("little works may be done at once until others must have had their time, and behind nobody who waits", async () => {
  const queue = workQueue();
  const done: string[] = [];
  const work = function* (name: string): Work {
    done.push(name);
    yield;
  };
  expect(queue.mayDoNow(5000)).toBe(false);
  let blocks = 0;
  while (queue.mayDoNow(64)) blocks += 64;
  expect(blocks).toBeGreaterThan(256);
  expect(blocks).toBeLessThan(5000);
  queue.add(work("waits"));
  expect(queue.mayDoNow(1)).toBe(false);
  while (done.length === 0) await Bun.sleep(1);
  expect(queue.mayDoNow(64)).toBe(true);
  queue.close();
});
