/** Blocks by the hashes that caches have for them. */
import { expect, test } from "bun:test";
import { PrefixBoard } from "../../../src/threads/prefix-board.ts";
import type { ChainKeys, PrefixCache } from "../../../src/threads/prefix-types.ts";
import { random } from "../generation/random.ts";

const { below } = random(3);
const fresh = (count: number): ChainKeys => ({
  keys: new Int32Array(count * 2).map(() => below(2 ** 32) | 0),
  count,
  blockSize: 16,
});

function world(megabytes = 1) {
  const board = PrefixBoard.create(1, megabytes);
  const writer = board.writer();
  return { board, writer, reader: board.reader(0), cache: () => writer.cache(writer.claim(0, 0)) };
}

/** All of a chain, in pieces; the hashes are the keys unless given. Gives the position of the last block. */
function store(cache: PrefixCache, { keys, count }: ChainKeys, hashes = keys): number {
  let position = -1;
  for (let from = 0; from < count; from += cache.mostTold) {
    const blocks = Math.min(cache.mostTold, count - from);
    cache.keys.set(keys.subarray(from * 2, (from + blocks) * 2));
    position = cache.stored(blocks, position, hashes, from);
  }
  return position;
}

const known = (cache: PrefixCache, { keys }: ChainKeys, block: number) =>
  cache.find(keys[block * 2]!, keys[block * 2 + 1]!);

test("are known to their cache only, nearly as many as there is room for", () => {
  const { board, cache, reader } = world();
  const [one, other] = [cache(), cache()];
  const chain = fresh(Math.floor(board.capacity * 0.85));
  store(one, chain);
  let found = 0;
  for (let i = 0; i < chain.count; i++) {
    if (known(one, chain, i)?.key.join() === `${chain.keys[i * 2]},${chain.keys[i * 2 + 1]}`) found++;
    expect(known(other, chain, i)).toBeUndefined();
  }
  expect(found).toBeGreaterThan(chain.count * 0.995);
  expect(reader.match(chain).depth(one.member)).toBeGreaterThan(0);
});

test("are held as long as a copy is, however many there were", () => {
  const { cache, reader } = world();
  const holder = cache();
  const chain = fresh(1);
  for (const copies of [1, 2, 6, 15, 16, 40, 300]) {
    for (let i = 0; i < copies; i++) store(holder, chain);
    for (let i = 0; i < copies; i++) {
      expect(reader.match(chain).depth(holder.member)).toBe(1);
      expect(holder.removed(1, chain.keys)[0]).toBe(1);
    }
    expect(reader.match(chain).depth(holder.member)).toBe(0);
    expect(holder.removed(1, chain.keys)[0]).toBe(0);
  }
});

test("begin to be counted anew where a hash stands for another block", () => {
  const { cache } = world();
  const holder = cache();
  const [chain, other] = [fresh(1), fresh(1)];
  for (let i = 0; i < 20; i++) store(holder, chain);
  store(holder, other, chain.keys);
  expect(known(holder, chain, 0)?.key.join()).toBe(other.keys.join());
  expect(holder.removed(1, chain.keys)[0]).toBe(1);
  expect(holder.removed(1, chain.keys)[0]).toBe(0);
});

test("of a cache that was cleared are gone, and what it is called comes back, but not while anything of it is left", () => {
  const { writer, cache } = world();
  const [kept, cleared] = [cache(), cache()];
  const chain = fresh(30);
  store(kept, chain);
  for (let i = 0; i < 10_000; i++) {
    expect(known(cleared, chain, 7)).toBeUndefined();
    store(cleared, chain);
    cleared.clear();
  }
  while (writer.sweepHashes(100));
  store(cleared, chain);
  for (const one of [kept, cleared]) expect(known(one, chain, 29)).toBeDefined();
});

test("are not held either where there is no room for their hashes; and have room where others mean nothing any more", () => {
  const { board, cache, reader } = world(0.1);
  const caches = Array.from({ length: 5 }, cache);
  const all = Array.from({ length: Math.floor(board.capacity / 40) }, () => fresh(20));
  let held = 0;
  for (const chain of all) for (const one of caches) store(one, chain);
  for (const chain of all)
    for (const one of caches) {
      let depth = 0;
      while (depth < chain.count && known(one, chain, depth) !== undefined) depth++;
      expect(reader.match(chain).depth(one.member)).toBe(depth);
      for (let i = 0; i < chain.count; i++) if (known(one, chain, i) !== undefined) held++;
    }
  expect(held).toBeGreaterThan(board.capacity * 0.9);
  expect(held).toBeLessThanOrEqual(board.capacity);
  for (const one of caches.slice(1)) one.clear();
  const again = fresh(20);
  store(caches[1]!, again);
  expect(reader.match(again).depth(caches[1]!.member)).toBe(20);
});

test("behind one that is not there any more are left out", () => {
  const { cache, reader, writer } = world();
  const holder = cache();
  const chain = fresh(25);
  const position = store(holder, chain);
  for (let i = 24; i >= 0; i--) holder.removed(1, chain.keys, i);
  const more = fresh(2);
  holder.keys.set(more.keys);
  expect(holder.stored(2, position, more.keys)).toBe(-1);
  expect([reader.match(more).depth(holder.member), writer.stats().dropped]).toEqual([0, 2]);
});
