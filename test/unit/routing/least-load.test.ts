import { expect, test } from "bun:test";
import { leastLoad } from "../../../src/routing/least-load.ts";
import { random } from "../generation/random.ts";

test("nobody to choose from", () => {
  expect(leastLoad([], () => 0, 5)).toBeUndefined();
});

test("a candidate with the least load, whatever the turn", () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const { below } = random(seed);
    const loads = Array.from({ length: 1 + below(6) }, () => below(4));
    const chosen = leastLoad([...loads.keys()], (i) => loads[i] ?? 0, below(1000));
    expect(loads[chosen ?? -1]).toBe(Math.min(...loads));
  }
});

test("equals are taken in turn", () => {
  const counts = [0, 0, 0];
  for (let turn = 0; turn < 30; turn++) counts[leastLoad([0, 1, 2], () => 0, turn) ?? 0]!++;
  expect(counts).toEqual([10, 10, 10]);
  expect(leastLoad(["a", "b", "c"], () => 0, 1)).toBe("b");
});

test("each load is read once", () => {
  const read: number[] = [];
  leastLoad([0, 1, 2], (i) => read.push(i), 1);
  expect(read).toEqual([1, 2, 0]);
});
