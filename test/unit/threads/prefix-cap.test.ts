/** What the prefix index does when its memory is full. */
import { describe, expect, test } from "bun:test";
import { PrefixBoard } from "../../../src/threads/prefix-board.ts";
import type { ChainKeys } from "../../../src/threads/prefix-types.ts";
import { TestCaches } from "../../support/prefix.ts";
import { random } from "../generation/random.ts";

const START = 1_800_000_000_000;
const BLOCKS = 100;

function fresh(below: (n: number) => number): ChainKeys {
  return { keys: new Int32Array(BLOCKS * 2).map(() => below(2 ** 32) | 0), count: BLOCKS, blockSize: 16 };
}

describe.each([
  ["with the sweep", true],
  ["without it", false],
])("three times as many blocks as there is room for, %s", (_, sweeps) => {
  const board = PrefixBoard.create(1, 1);
  const writer = board.writer();
  const reader = board.reader(0);
  const { below } = random(4);
  const member = writer.claim(1, 0);
  const total = Math.ceil((3 * board.capacity) / BLOCKS);
  const all: ChainKeys[] = [];
  const hot = fresh(below);
  let now = START;
  let most = 0;
  for (let i = 0; i < total; i++) {
    const chain = fresh(below);
    all.push(chain);
    reader.promise(chain, 0, member, now);
    reader.promise(hot, reader.match(hot, now).depth(member), member, now);
    now += 4000;
    if (sweeps) writer.sweep(board.capacity / 10, now);
    most = Math.max(most, writer.stats().bytes);
  }
  const depth = (chain: ChainKeys) => reader.match(chain, now).depth(member);
  const held = (chains: readonly ChainKeys[]) =>
    chains.reduce((sum, chain) => sum + depth(chain), 0) / (chains.length * BLOCKS);

  test("takes no more memory than it may", () => {
    expect(most).toBeLessThanOrEqual(2 ** 20);
    expect(writer.stats().blocks).toBeLessThanOrEqual(board.capacity);
    expect(writer.stats().evicted).toBeGreaterThan(board.capacity);
    expect(writer.stats().dropped).toBe(0);
  });

  test("keeps what is new, and forgets what is old", () => {
    expect(held(all.slice(-Math.floor(total / 10)))).toBeGreaterThan(0.99);
    expect(held(all.slice(0, Math.floor(total / 3)))).toBeLessThan(0.01);
  });

  test("keeps what is old but in use", () => {
    expect(depth(hot)).toBe(BLOCKS);
  });
});

describe("more sets of members than can be kept", () => {
  const board = PrefixBoard.create(1, 1);
  const writer = board.writer();
  const reader = board.reader(0);
  const caches = new TestCaches(writer);
  const { below } = random(8);
  const members = Array.from({ length: 64 }, (_, i) => writer.claim(i, 0));
  const written = new Map<ChainKeys, Set<number>>();
  for (let i = 0; i < 1500; i++) {
    const chain = { ...fresh(below), count: 1 };
    const holders = new Set<number>();
    written.set(chain, holders);
    for (let n = 0; n < 4; n++) {
      const member = members[below(members.length)]!;
      if (below(2) === 0) reader.promise(chain, 0, member, START);
      else caches.tell(chain, member);
      holders.add(member);
    }
  }
  const wrong = () => {
    let [more, fewer] = [0, 0];
    for (const [chain, holders] of written) {
      const match = reader.match(chain, START);
      for (const member of members) {
        if (match.depth(member) > 0 && !holders.has(member)) more++;
        if (match.depth(member) === 0 && holders.has(member)) fewer++;
      }
    }
    return { more, fewer };
  };

  test("never makes anybody hold what was not written of him; what is not written is counted", () => {
    const { more, fewer } = wrong();
    expect(more).toBe(0);
    expect(fewer).toBeGreaterThan(0);
    expect(writer.stats().dropped).toBeGreaterThan(0);
  });
});

test("sets that no block has any longer are given up, and their ids are used again and again", () => {
  const board = PrefixBoard.create(1, 1);
  const writer = board.writer();
  const reader = board.reader(0);
  const caches = new TestCaches(writer);
  const { below } = random(9);
  const members = Array.from({ length: 64 }, (_, i) => writer.claim(i, 0));
  const chains = Array.from({ length: 60 }, () => ({ ...fresh(below), count: 1 }));
  const holders = chains.map(() => new Set<number>());
  let changes = 0;
  for (let step = 0; step < 20_000; step++) {
    const i = below(chains.length);
    const member = members[below(members.length)]!;
    if (holders[i]!.has(member)) {
      expect(caches.untell(chains[i]!, member, 0)).toBe(true);
      holders[i]!.delete(member);
    } else {
      expect(caches.tell(chains[i]!, member)).toBe(1);
      holders[i]!.add(member);
    }
    changes++;
    const match = reader.match(chains[i]!, START);
    const found = members.filter((other) => match.depth(other) === 1);
    if (!Bun.deepEquals(new Set(found), holders[i])) throw new Error(`step ${step}: ${found.join(" ")}`);
  }
  expect(writer.stats().dropped).toBe(0);
  expect(writer.stats().sets).toBeLessThan(changes / 40);
});
