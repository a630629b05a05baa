import { afterEach, expect, test } from "bun:test";
import { sleep, systemClock } from "../../../src/fleet/clock.ts";
import { Gate } from "../../../src/fleet/gate.ts";
import { LostWorkers } from "../../../src/fleet/lost-workers.ts";

const clock = systemClock();
/** Far enough apart that a machine which stands still between two lines does not change the order. */
const [SOON, LATER, LAST] = [20, 400, 800];
afterEach(() => clock.close());

test("nothing is early, what is called off never comes, and the order is that of the times", async () => {
  const seen: string[] = [];
  const began = Date.now();
  const times: number[] = [];
  const note = (name: string) => () => {
    seen.push(name);
    times.push(Date.now() - began);
  };
  const never = clock.after(LATER, note("never"));
  clock.after(LAST, note("second"));
  clock.after(SOON, () => {
    note("first")();
    never();
  });
  await sleep(clock, LAST + 50, new AbortController().signal);
  expect(seen).toEqual(["first", "second"]);
  expect(times[0]).toBeGreaterThanOrEqual(SOON);
  expect(times[1]).toBeGreaterThanOrEqual(LAST);
});

test("what is due at once, as the process was busy, comes in the order of the times all the same", async () => {
  const seen: number[] = [];
  for (const ms of [LAST, SOON, LATER]) clock.after(ms, () => seen.push(ms));
  Bun.sleepSync(LAST + 20);
  await sleep(clock, 10, new AbortController().signal);
  expect(seen).toEqual([SOON, LATER, LAST]);
});

test("one of several that are due together may call off the others", async () => {
  const seen: number[] = [];
  const callOffs = [0, 1, 2].map((i) =>
    clock.after(15, () => {
      seen.push(i);
      for (const callOff of callOffs) callOff();
    }),
  );
  await sleep(clock, 60, new AbortController().signal);
  expect(seen).toEqual([0]);
});

test("a sleeper wakes with its signal", async () => {
  const signal = new AbortController();
  const slept = sleep(clock, 1_000_000, signal.signal);
  signal.abort();
  await slept;
  await sleep(clock, 1_000_000, signal.signal);
});

test("a gate lets so many through, the others in their order, also after failures", async () => {
  const gate = new Gate(2);
  const seen: string[] = [];
  const ends: (() => void)[] = [];
  const work = (name: string) =>
    gate.run(async () => {
      seen.push(name);
      await new Promise<void>((resolve) => ends.push(resolve));
      if (name === "a") throw new Error("failed");
    });
  const all = Promise.allSettled(["a", "b", "c", "d"].map(work));
  await Promise.resolve();
  expect(seen).toEqual(["a", "b"]);
  ends[0]!();
  await new Promise((resolve) => setImmediate(resolve));
  expect(seen).toEqual(["a", "b", "c"]);
  ends[1]!();
  await new Promise((resolve) => setImmediate(resolve));
  for (const end of ends) end();
  expect((await all).map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled", "fulfilled"]);
  expect(seen).toEqual(["a", "b", "c", "d"]);
});

test("requests of a lost worker are told once, those that were called off never", () => {
  const lost = new LostWorkers();
  const told: string[] = [];
  const forget = lost.watch(1, () => told.push("begun"));
  lost.watch(1, () => told.push("one"));
  const other = lost.watch(2, () => told.push("other"));
  forget();
  lost.lost(1);
  lost.lost(1);
  expect([told, lost.size]).toEqual([["one"], 1]);
  other();
  forget();
  expect(lost.size).toBe(0);
});
