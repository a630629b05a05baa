import { describe, expect, test } from "bun:test";
import { PrefixBoard } from "../../../src/threads/prefix-board.ts";
import { instantiate } from "../../../src/threads/prefix-kernel/kernel.ts";
import { type ChainKeys, MAX_MEMBERS, type PrefixMatch } from "../../../src/threads/prefix-types.ts";
import { TestCaches } from "../../support/prefix.ts";
import { random } from "../generation/random.ts";
import { chains, PrefixModel } from "./prefix-model.ts";

const START = 1_800_000_000_000;

function index(megabytes = 16) {
  const board = PrefixBoard.create(2, megabytes);
  const writer = board.writer();
  writer.sweep(0, START);
  return { board, writer, caches: new TestCaches(writer), reader: PrefixBoard.open(board.memory).reader(0) };
}

const depths = (match: PrefixMatch, members: readonly number[]) => members.map((member) => match.depth(member));

describe("a chain", () => {
  const [chain] = chains(1, 50, 3) as [ChainKeys];
  const half = { ...chain, count: chain.count >> 1 };

  test("is long enough to tell", () => expect(chain.count).toBeGreaterThan(10));

  test("is held as far as a member told, or as it was sent there", () => {
    const { writer, reader, caches } = index();
    const [one, other, third] = [writer.claim(7, 0), writer.claim(7, 1), writer.claim(8, 0)];
    caches.tell(half, one);
    reader.promise(chain, 0, other, START);
    const match = reader.match(chain, START);
    expect(depths(match, [one, other, third])).toEqual([half.count, chain.count, 0]);
    expect([match.isExact(one), match.isExact(other), match.isExact(third)]).toEqual([true, false, false]);
    expect(match.spans()).toEqual([
      { end: half.count, exact: [one], guessed: [other] },
      { end: chain.count, exact: [], guessed: [other] },
    ]);
  });

  test("that nobody holds has no depth and no spans", () => {
    const { writer, reader } = index();
    const member = writer.claim(7, 0);
    const match = reader.match(chain, START);
    expect([match.depth(member), match.spans()]).toEqual([0, []]);
    expect(reader.match({ ...chain, count: 0 }, START).spans()).toEqual([]);
  });

  test("is held up to the first block that a member gave up", () => {
    const { writer, reader, caches } = index();
    const [one, other] = [writer.claim(7, 0), writer.claim(8, 0)];
    for (const member of [one, other]) expect(caches.tell(chain, member)).toBe(chain.count);
    const key = (i: number) => [chain.keys[i * 2]!, chain.keys[i * 2 + 1]!] as const;
    expect(caches.of(one).find(...key(4))?.key).toEqual(key(4));
    for (let i = chain.count - 1; i >= 4; i--) expect(caches.untell(chain, one, i)).toBe(true);
    expect(depths(reader.match(chain, START), [one, other])).toEqual([4, chain.count]);
    expect(caches.untell(chain, one, 4)).toBe(false);
    expect(depths(reader.match(chain, START), [one, other])).toEqual([4, chain.count]);
    for (let i = 0; i < chain.count; i++) caches.untell(chain, other, i);
    for (let i = 0; i < 4; i++) caches.untell(chain, one, i);
    expect(writer.stats()).toMatchObject({ blocks: 0, places: 0 });
    expect(caches.of(one).find(...key(0))).toBeUndefined();
  });

  test("is believed for ten seconds of who sends events, for half an hour of others; and what was told, for ever", () => {
    const { writer, reader, caches } = index();
    const [sender, other, teller] = [writer.claim(7, 0), writer.claim(8, 0), writer.claim(9, 0)];
    writer.setExact(sender, true);
    writer.setExact(teller, true);
    for (const member of [sender, other]) reader.promise(chain, 0, member, START);
    caches.tell(half, teller);
    const at = (seconds: number) => depths(reader.match(chain, START + seconds * 1000), [sender, other, teller]);
    expect(at(0)).toEqual([chain.count, chain.count, half.count]);
    expect(at(10)).toEqual([chain.count, chain.count, half.count]);
    expect(at(11)).toEqual([0, chain.count, half.count]);
    expect(at(1800)).toEqual([0, chain.count, half.count]);
    expect(at(1801)).toEqual([0, 0, half.count]);
  });

  test("is believed anew when it is used", () => {
    const { writer, reader } = index();
    const [member, sender] = [writer.claim(7, 0), writer.claim(8, 0)];
    writer.setExact(sender, true);
    const at = (seconds: number) => reader.match(chain, START + seconds * 1000);
    reader.promise(chain, 0, member, START);
    for (let seconds = 0; seconds <= 9000; seconds += 900) {
      expect(at(seconds).depth(member)).toBe(chain.count);
      reader.promise(chain, chain.count, member, START + seconds * 1000);
    }
    expect(at(9000 + 1801).depth(member)).toBe(0);
    reader.promise(chain, 0, sender, START + 20_000_000);
    expect(at(20_005).depth(sender)).toBe(chain.count);
    reader.promise(chain, chain.count, sender, START + 20_009_000);
    expect(at(20_011).depth(sender)).toBe(0);
  });

  test("sent to another renews nothing of what was guessed before and is believed no more", () => {
    const { writer, reader } = index();
    const [sender, other] = [writer.claim(7, 0), writer.claim(8, 0)];
    writer.setExact(sender, true);
    reader.promise(chain, 0, sender, START);
    reader.promise(chain, 0, other, START + 11_000);
    expect(depths(reader.match(chain, START + 12_000), [sender, other])).toEqual([0, chain.count]);
  });

  test("sent to who told of it is not guessed of it besides", () => {
    const { writer, reader, caches } = index();
    const member = writer.claim(7, 0);
    caches.tell(chain, member);
    reader.promise(chain, 0, member, START);
    for (let i = chain.count - 1; i >= 0; i--) caches.untell(chain, member, i);
    expect(reader.match(chain, START).depth(member)).toBe(0);
    expect(writer.stats()).toMatchObject({ blocks: 0, places: 0 });
  });

  test("what a member tells takes the place of what was guessed of it", () => {
    const { writer, reader, caches } = index();
    const member = writer.claim(7, 0);
    writer.setExact(member, true);
    reader.promise(chain, 0, member, START);
    caches.tell(chain, member);
    expect(reader.match(chain, START).isExact(member)).toBe(true);
    for (let i = 0; i < chain.count; i++) caches.untell(chain, member, i);
    expect(reader.match(chain, START).depth(member)).toBe(0);
  });
});

describe("a member", () => {
  const all = chains(30, 40, 5);

  test("that is cleared or leaves takes nothing of others with it", () => {
    const { writer, reader, caches } = index();
    const members = Array.from({ length: 40 }, (_, i) => writer.claim(i, 0));
    const { below } = random(1);
    for (const chain of all)
      for (const member of members) {
        if (below(2) === 0) caches.tell(chain, member, 0, below(chain.count + 1));
        else reader.promise(chain, below(chain.count + 1), member, START);
      }
    const held = () => all.map((chain) => depths(reader.match(chain, START), members));
    const before = held();
    const cleared = new Set([3, 33, 39]);
    caches.clear(3);
    caches.release(33);
    caches.clear(39);
    const after = before.map((row) => row.map((depth, i) => (cleared.has(i) ? 0 : depth)));
    expect(after).not.toEqual(before);
    expect(held()).toEqual(after);
    expect(writer.claim(50, 0)).toBe(40); // a number that was given back comes last
    expect(caches.tell(all[0]!, 33)).toBe(0);
    reader.promise(all[0]!, 0, 33, START);
    expect(held()).toEqual(after);
    expect(caches.tell(all[0]!, 3)).toBe(all[0]!.count);
  });

  test("is refused when there are too many; numbers are given again", () => {
    const { writer, reader, caches } = index();
    for (let i = 0; i < MAX_MEMBERS; i++) expect(writer.claim(i, 0)).toBe(i);
    expect(() => writer.claim(5000, 0)).toThrow(RangeError);
    const [chain] = all as [ChainKeys];
    caches.tell(chain, 1023);
    expect(reader.match(chain, START).depth(1023)).toBe(chain.count);
    caches.release(1023);
    expect(writer.claim(5000, 0)).toBe(1023);
    expect(reader.match(chain, START).depth(1023)).toBe(0);
  });

  test("what nobody holds is given back by the sweep", () => {
    const { writer, reader, caches } = index();
    const [one, other] = [writer.claim(1, 0), writer.claim(2, 0)];
    for (const chain of all) caches.tell(chain, one);
    reader.promise(all[0]!, 0, other, START);
    caches.release(one);
    const { blocks } = writer.stats();
    writer.sweep(1e6, START + 1000);
    expect(blocks).toBeGreaterThan(all[0]!.count);
    expect(writer.stats().blocks).toBe(all[0]!.count);
    writer.sweep(1e6, START + 2_000_000);
    expect(writer.stats()).toMatchObject({ blocks: 0, places: 0, evicted: 0, dropped: 0 });
  });
});

describe("against what is plainly written, step by step", () => {
  // of chains so short that every block of them is looked at
  test("every block, whatever is told, taken back and promised in whatever order", () => {
    const { writer, reader, caches } = index(4);
    const model = new PrefixModel();
    const { below } = random(11);
    const all = chains(60, 19, 11);
    const members = Array.from({ length: 70 }, (_, i) => writer.claim(i, 0));
    let now = START / 1000;
    let held = 0;
    for (let step = 0; step < 8000; step++) {
      const chain = all[below(all.length)]!;
      const member = members[below(members.length)]!;
      const what = below(100);
      if (what < 35) {
        const count = below(chain.count + 1);
        expect(caches.tell(chain, member, 0, count)).toBe(count);
        for (let i = 0; i < count; i++) model.tell(chain, i, member);
      } else if (what < 60) {
        const block = below(chain.count);
        expect(caches.untell(chain, member, block)).toBe(model.hasTold(chain, block, member));
        model.untell(chain, block, member);
      } else if (what < 85) {
        const from = below(model.depth(chain, member, now) + 1);
        reader.promise(chain, from, member, now * 1000);
        model.promise(chain, from, member, now);
      } else if (what < 86) {
        caches.clear(member);
        model.forget(member);
      } else if (what < 87) {
        writer.setExact(member, true);
        model.setExact(member, true);
      } else if (what < 95) writer.sweep(below(200_000), now * 1000);
      else now += below(20) * (below(10) === 0 ? 100 : 1);

      if (step % 60 !== 0) continue;
      for (const asked of all) {
        const match = reader.match(asked, now * 1000);
        for (const holder of members) {
          const depth = match.depth(holder);
          const least = model.depth(asked, holder, now);
          const most = model.depth(asked, holder, now, true);
          const isExact = depth > 0 && model.hasTold(asked, depth - 1, holder);
          if (depth < least || depth > most || match.isExact(holder) !== isExact)
            throw new Error(`step ${step}: member ${holder}: ${depth}, not ${least} to ${most}`);
          held += depth;
        }
      }
    }
    expect(held).toBeGreaterThan(40_000);
    for (const member of members) caches.clear(member);
    writer.sweep(1e6, now * 1000);
    expect(writer.stats()).toMatchObject({ blocks: 0, places: 0, evicted: 0, dropped: 0 });
  }, 60_000);

  test("depths, where caches fill from the front and forget from behind", () => {
    const { writer, reader, caches } = index();
    const model = new PrefixModel();
    const { below } = random(12);
    const all = chains(40, 120, 12);
    const members = Array.from({ length: 30 }, (_, i) => writer.claim(i, 0));
    const now = START / 1000;
    let deep = 0;
    for (let step = 0; step < 3000; step++) {
      const chain = all[below(all.length)]!;
      const member = members[below(members.length)]!;
      const count = below(chain.count + 1);
      const part = { ...chain, count };
      if (below(3) === 0) {
        const from = Math.min(count, reader.match(chain, START).depth(member));
        reader.promise(part, from, member, START);
        model.promise(part, from, member, now);
      } else if (below(3) > 0) {
        caches.tell(part, member);
        for (let i = 0; i < count; i++) model.tell(chain, i, member);
      } else if (below(10) === 0) {
        caches.clear(member);
        model.forget(member);
      }
      const asked = all[below(all.length)]!;
      const match = reader.match(asked, START);
      const expected = members.map((holder) => model.depth(asked, holder, now));
      expect(depths(match, members)).toEqual(expected);
      deep += Math.max(...expected);
    }
    expect(deep).toBeGreaterThan(30_000);
    expect(writer.stats()).toMatchObject({ evicted: 0, dropped: 0 });
  }, 60_000);
});

describe("of a prompt whose end was sent long ago", () => {
  const keys = new Int32Array(2000).map((_, i) => Math.imul(i + 1, 0x9e3779b1));
  const long: ChainKeys = { keys, count: 1000, blockSize: 16 };

  test.each([
    ["the last half an hour", false, 1800],
    ["the last seconds, where events are sent,", true, 10],
  ])("what was sent within %s is found without it", (_, isExact, seconds) => {
    const { writer, reader } = index();
    const [member, other] = [writer.claim(1, 0), writer.claim(2, 0)];
    writer.setExact(member, isExact);
    reader.promise(long, 0, other, START);
    reader.promise(long, 0, member, START);
    const later = START + (seconds / 2) * 1000;
    for (const count of [10, 150, 800]) {
      reader.promise({ ...long, count }, 0, member, later);
      for (let end = count; end <= long.count; end += 111) {
        const match = reader.match({ ...long, count: end }, START + (seconds + 2) * 1000);
        expect(match.depth(member)).toBe(count);
        expect(match.spans().at(-1)!.end).toBe(end);
      }
    }
    expect(reader.match(long, later + (seconds + 1) * 1000).depth(member)).toBe(0);
  });
});

describe("what threads have promised", () => {
  test("is told to other gateways once, but not of those who send events, nor what others told", () => {
    const { board, writer, reader } = index();
    const second = board.reader(1);
    const [one, sender] = [writer.claim(1, 0), writer.claim(2, 0)];
    writer.setExact(sender, true);
    const [chain, other] = chains(200, 40, 9).filter(({ count }) => count > 12) as [ChainKeys, ChainKeys];
    reader.promise(chain, 12, one, START);
    reader.promise(chain, 0, sender, START);
    second.promise(other, 0, one, START);
    second.promise(chain, 0, one, START, true);
    const taken: unknown[] = [];
    const drain = () => writer.drain((member, keys, count, from) => taken.push([member, [...keys], count, from]));
    drain();
    expect(taken).toEqual([
      // from the beginning of its group of ten on, so that others find its place
      [one, [...chain.keys.subarray(20, chain.count * 2)], chain.count - 10, 10],
      [one, [...other.keys.subarray(0, other.count * 2)], other.count, 0],
    ]);
    drain();
    expect(taken).toHaveLength(2);
  });

  test("is told in pieces of a long prompt", () => {
    const { writer, reader } = index();
    const member = writer.claim(1, 0);
    const keys = new Int32Array(5000).map((_, i) => i + 1);
    reader.promise({ keys, count: 2500, blockSize: 16 }, 0, member, START);
    const taken: number[] = [];
    writer.drain((_, piece, count, from) => {
      expect(from * 2).toBe(taken.length);
      expect(piece).toHaveLength(count * 2);
      taken.push(...piece);
    });
    expect(taken).toEqual([...keys]);
  });

  test("is dropped where nobody takes it, and goes on when somebody does", () => {
    const { writer, reader } = index();
    const member = writer.claim(1, 0);
    const all = chains(400, 100, 10);
    for (const chain of all) reader.promise(chain, 0, member, START);
    let blocks = 0;
    const drain = () =>
      writer.drain((_, keys, count) => {
        blocks += count;
        expect(keys).toHaveLength(count * 2);
      });
    drain();
    const sent = all.reduce((sum, { count }) => sum + count, 0);
    expect(blocks).toBeGreaterThan(5000);
    expect(blocks).toBeLessThan(sent);
    for (let round = 0; round < 20; round++) {
      const chain = all[round]!;
      reader.promise(chain, 0, member, START);
      const before = blocks;
      drain();
      expect(blocks - before).toBe(chain.count);
    }
  });
});

test("sizes that make no sense are refused", () => {
  expect(() => PrefixBoard.create(0, 1)).toThrow(RangeError);
  expect(() => PrefixBoard.create(1, 0)).toThrow(RangeError);
  expect(() => PrefixBoard.create(1, 5000)).toThrow(RangeError);
});

test.each([4096, 0.01])("memory of %d MB serves as well", (megabytes) => {
  const { board, writer, caches, reader } = index(megabytes);
  const member = writer.claim(1, 0);
  const chain = { keys: new Int32Array(100).map((_, i) => i + 1), count: 50, blockSize: 16 };
  expect(caches.tell(chain, member)).toBe(50);
  reader.promise(chain, 50, member, START);
  expect(reader.match(chain, START).depth(member)).toBe(50);
  expect(caches.untell(chain, member, 7)).toBe(true);
  expect(reader.match(chain, START).depth(member)).toBe(7);
  expect(board.capacity).toBeGreaterThan(megabytes * 20_000);
});

test("a thread that dies while it writes leaves an index that goes on", () => {
  const { board, writer, reader } = index(0.05);
  const members = Array.from({ length: 40 }, (_, i) => writer.claim(i, 0));
  const { below } = random(12);
  const all = chains(60, 8, 12);
  for (let round = 0; round < 300; round++) {
    while (instantiate(board.memory).lock(2, 1) === 0);
    expect(writer.stats().sets).toBeGreaterThanOrEqual(0);
    board.forgetThread(0); // not the one that had it
    board.forgetThread(1);
    for (let i = 0; i < 10; i++) {
      const chain = all[below(all.length)]!;
      const member = members[below(members.length)]!;
      reader.promise(chain, 0, member, START);
      const depth = reader.match(chain, START).depth(member);
      if (writer.stats().dropped === 0) expect(depth).toBe(chain.count);
    }
  }
});
