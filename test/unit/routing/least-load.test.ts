import { expect, test } from "bun:test";
import { type LoadOf, leastLoad } from "../../../src/routing/least-load.ts";
import { random } from "../generation/random.ts";

/** Candidates are numbers; `loads[i]` is the load of candidate i. */
const loadOf = (loads: readonly (readonly [running: number, queued?: number, kv?: number])[]): LoadOf<number> => ({
  running: (i) => loads[i]?.[0] ?? 0,
  queuedTokens: (i) => loads[i]?.[1] ?? 0,
  kvTenths: (i) => loads[i]?.[2] ?? 0,
});

test("nobody to choose from", () => {
  expect(leastLoad([], loadOf([]), 5)).toBeUndefined();
});

test("a candidate that none is less loaded than, whatever the turn", () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const { below } = random(seed);
    const loads = Array.from({ length: 1 + below(6) }, () => [below(3), below(3), below(3)] as const);
    const rank = ([running, queued, kv]: readonly [number, number, number]) => running * 100 + queued * 10 + kv;
    const chosen = leastLoad([...loads.keys()], loadOf(loads), below(1000));
    expect(rank(loads[chosen ?? -1]!)).toBe(Math.min(...loads.map(rank)));
  }
});

test("equals are taken in turn", () => {
  const counts = [0, 0, 0];
  for (let turn = 0; turn < 30; turn++) counts[leastLoad([0, 1, 2], loadOf([]), turn) ?? 0]!++;
  expect(counts).toEqual([10, 10, 10]);
  expect(leastLoad([5, 6, 7], loadOf([]), 1)).toBe(6);
});

test("nobody is asked for more than decides", () => {
  const asked: string[] = [];
  const ask = (what: string, value: (i: number) => number) => (i: number) => {
    asked.push(`${what} ${i}`);
    return value(i);
  };
  const load = {
    running: ask("running", (i) => i),
    queuedTokens: ask("queued", () => 0),
    kvTenths: ask("kv", () => 0),
  };
  leastLoad([0, 1, 2], load, 0);
  expect(asked).toEqual(["running 0", "running 1", "running 2"]);
});
