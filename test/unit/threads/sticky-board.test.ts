import { describe, expect, test } from "bun:test";
import { StickyBoard } from "../../../src/threads/sticky-board.ts";
import { random } from "../generation/random.ts";

const NOW = 1_800_000_000_000;
const IDLE = 60_000;

function boards() {
  const one = StickyBoard.create();
  return [one, StickyBoard.open(one.memory)] as const;
}

describe("a key", () => {
  test("sticks to its last two members, for all threads", () => {
    const [one, other] = boards();
    expect(one.find("key", NOW, IDLE)).toEqual([]);
    one.assign("key", 4, NOW);
    expect(other.find("key", NOW, IDLE)).toEqual([4]);
    other.assign("key", 0, NOW);
    expect(one.find("key", NOW, IDLE)).toEqual([0, 4]);
    one.assign("key", 4, NOW);
    expect(one.find("key", NOW, IDLE)).toEqual([4, 0]);
    one.assign("key", 1023, NOW);
    expect(one.find("key", NOW, IDLE)).toEqual([1023, 4]);
    expect([0, 4, 1023].map((member) => other.count(member))).toEqual([0, 1, 1]);
    expect(one.size()).toBe(1);
    expect(one.find("another", NOW, IDLE)).toEqual([]);
  });

  test("is forgotten when it was not used for so long; a look is not a use", () => {
    const [board] = boards();
    board.assign("key", 4, NOW);
    expect(board.find("key", NOW + IDLE, IDLE)).toEqual([4]);
    expect(board.look("key", NOW + 2 * IDLE, IDLE)).toEqual([4]);
    expect(board.look("key", NOW + 2 * IDLE + 1000, IDLE)).toEqual([]);
    expect([board.size(), board.count(4)]).toEqual([1, 1]);
    expect(board.find("key", NOW + 2 * IDLE + 1000, IDLE)).toEqual([]);
    expect([board.size(), board.count(4)]).toEqual([0, 0]);
  });

  test("leaves a member that has left", () => {
    const [board] = boards();
    board.assign("both", 1, NOW);
    board.assign("both", 2, NOW);
    board.assign("one", 2, NOW);
    board.assign("other", 3, NOW);
    board.forgetMember(2);
    expect(["both", "one", "other"].map((key) => board.find(key, NOW, IDLE))).toEqual([[1], [], [3]]);
    expect([board.size(), board.count(1), board.count(2), board.count(3)]).toEqual([2, 1, 0, 1]);
  });
});

test("many keys, step by step against a map", () => {
  const [one, other] = boards();
  const { below } = random(3);
  const model = new Map<string, number[]>();
  for (let step = 0; step < 5000; step++) {
    const key = `key ${below(800)}`;
    const member = below(20);
    const board = below(2) === 0 ? one : other;
    if (below(200) === 0) {
      board.forgetMember(member);
      for (const [name, members] of model) {
        const left = members.filter((id) => id !== member);
        if (left.length === 0) model.delete(name);
        else model.set(name, left);
      }
    } else if (below(2) === 0) {
      board.assign(key, member, NOW);
      model.set(key, [member, ...(model.get(key) ?? []).filter((id) => id !== member)].slice(0, 2));
    } else expect(board.find(key, NOW, IDLE)).toEqual(model.get(key) ?? []);
  }
  expect(one.size()).toBe(model.size);
  for (let member = 0; member < 20; member++)
    expect(one.count(member)).toBe([...model.values()].filter((members) => members.includes(member)).length);
});

test("where there is no room, the keys that were not used for the longest time give way", () => {
  const [board] = boards();
  const total = 90_000;
  for (let i = 0; i < total; i++) board.assign(`key ${i}`, i % 7, NOW + i * 10);
  const now = NOW + total * 10;
  const found = (from: number, to: number) => {
    let count = 0;
    for (let i = from; i < to; i++) if (board.look(`key ${i}`, now, 1e9).length === 1) count++;
    return count / (to - from);
  };
  expect(board.size()).toBeLessThanOrEqual(65_536);
  expect(board.size()).toBeGreaterThan(60_000);
  expect(found(total - 10_000, total)).toBeGreaterThan(0.99);
  expect(found(0, 10_000)).toBeLessThan(0.2);
  let counted = 0;
  for (let member = 0; member < 7; member++) counted += board.count(member);
  expect(counted).toBe(board.size());
  // idle keys are tidied up while others are looked for
  for (let i = 0; i < 8192; i++) board.find("none", now + 1e7, 1000);
  expect(board.size()).toBe(0);
});

test("counters go on for all threads, each by its name", () => {
  const [one, other] = boards();
  expect([one.upcoming("a"), one.next("a"), other.next("a"), one.next("b"), other.upcoming("a")]).toEqual([
    0, 0, 1, 0, 2,
  ]);
});

test("lengths are counted by quarters of a power of two, for each name", () => {
  const [one, other] = boards();
  for (const tokens of [0, 1, 4096, 4096, 5000, 2 ** 40]) one.countLength("a", tokens);
  other.countLength("b", 4096);
  const at = (name: string) => [...one.lengths(name).entries()].filter(([, count]) => count > 0);
  expect(at("a")).toEqual([
    [0, 2],
    [48, 2],
    [49, 1],
    [127, 1],
  ]);
  expect(at("b")).toEqual([[48, 1]]);
  expect(at("c")).toEqual([]);
});
