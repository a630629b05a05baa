import { expect, test } from "bun:test";
import { policyOf } from "../../../../src/routing/policies/index.ts";
import { StickyBoard } from "../../../../src/threads/sticky-board.ts";
import { counts, idle, isFair, Surroundings, worker, workers } from "./support.ts";

test("round_robin: one after the other, for all threads together and each model by itself", () => {
  const around = new Surroundings(idle(3));
  const context = { ...around.context, sticky: StickyBoard.create() };
  const threads = [policyOf("round_robin"), policyOf("round_robin")];
  const next = (thread: number, model = "model") =>
    threads[thread]!.choose(around.workers, { tokens: 1 }, { ...context, model }).worker.member;
  const first = next(0);
  const turns = [0, 1, 1, 0, 1].map((thread) => (next(thread) - first + 3) % 3);
  expect(turns).toEqual([1, 2, 0, 1, 2]);
  const other = next(0, "two");
  expect(next(1, "two")).toBe((other + 1) % 3);
  expect(next(0)).toBe(first);
});

test("round_robin: explaining does not advance it", () => {
  const around = new Surroundings(idle(3));
  const policy = policyOf("round_robin");
  for (let i = 0; i < 9; i++) {
    const told = around.choose(policy, { tokens: 1 }, true).worker;
    expect(around.choose(policy, { tokens: 1 }, true).worker).toBe(told);
    expect(around.choose(policy).worker).toBe(told);
  }
});

test("random: everyone alike, and by cost", () => {
  const around = new Surroundings(idle(7));
  const policy = policyOf("random");
  expect(isFair(counts(around, () => around.choose(policy).worker, 3500))).toBe(true);
  const priced = new Surroundings(workers({}, { cost: 2 }, { cost: 4 }));
  expect(
    isFair(
      counts(priced, () => priced.choose(policy).worker, 3500),
      [4, 2, 1],
    ),
  ).toBe(true);
});

test("random: what costs nothing does not get everything", () => {
  const around = new Surroundings([worker(0, { cost: 0 }), worker(1, { cost: 0 })]);
  const policy = policyOf("random");
  expect(isFair(counts(around, () => around.choose(policy).worker, 1000))).toBe(true);
});

test("passthrough: the first, however loaded", () => {
  const around = new Surroundings(workers({ running: 50 }, {}));
  for (let i = 0; i < 5; i++) expect(around.choose(policyOf("passthrough")).worker.id).toBe("w0");
});
