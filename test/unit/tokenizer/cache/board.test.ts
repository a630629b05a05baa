/** The shared memory of the cache: what is found, what gives way, and that nothing half written is ever taken for whole. */
import { describe, expect, test } from "bun:test";
import { createTokenizerCache, Level, openCacheBoard } from "../../../../src/tokenizer/cache/board.ts";
import { bigOf } from "../../../../src/tokenizer/cache/hash.ts";
import { cacheStats } from "../../../../src/tokenizer/cache/stats.ts";
import { random } from "../fixtures.ts";

const memory = (l0Entries: number, bytes: number): SharedArrayBuffer =>
  createTokenizerCache({ l0: true, l1: true, l0Entries, bytes });
const hash = (bytes: Uint8Array): bigint => Bun.hash.xxHash3(bytes);
const textOf = (i: number): Buffer => Buffer.from(`text ${i} `.repeat(1 + (i % 7)));
const idsOf = (i: number): Uint32Array => Uint32Array.from({ length: 1 + (i % 9) }, (_, k) => i * 16 + k);

function store(board: ReturnType<typeof openCacheBoard>, i: number): void {
  const [text, ids] = [textOf(i), idsOf(i)];
  const at = board.append(text, ids);
  board.put(Level.l0, hash(text), at, text.length, ids.length);
}
function read(board: ReturnType<typeof openCacheBoard>, i: number): number[] | undefined {
  const text = textOf(i);
  const found = board.find(Level.l0, hash(text), text.length);
  const content = found && board.contentOf(found);
  if (!found || !content || !text.equals(content.text)) return undefined;
  const ids = [...content.ids];
  return board.lives(found) ? ids : undefined;
}

test("what was put is found, from every view of the memory, until newer records take its place", () => {
  const shared = memory(1000, 4096);
  const [writer, reader] = [openCacheBoard(shared), openCacheBoard(shared)];
  for (let i = 0; i < 20_000; i++) {
    store(writer, i);
    expect(read(reader, i)).toEqual([...idsOf(i)]);
    if (i >= 10) expect(read(reader, i - 10)).toEqual([...idsOf(i - 10)]); // ten records are far less than 4 kB
    if (i >= 1000) expect(read(reader, i - 1000)).toBeUndefined();
  }
});

test("both limits hold, and stay used", () => {
  const shared = memory(64, 1 << 20);
  const board = openCacheBoard(shared);
  for (let i = 0; i < 5000; i++) {
    store(board, i);
    expect(board.entries(Level.l0)).toBeLessThanOrEqual(64);
  }
  expect(board.entries(Level.l0)).toBe(64);
  const tiny = openCacheBoard(memory(100_000, 1000));
  for (let i = 0; i < 5000; i++) store(tiny, i);
  expect(tiny.bytes(Level.l0, 0)).toBeGreaterThan(800);
  expect(tiny.bytes(Level.l0, 0)).toBeLessThanOrEqual(1000);
  expect(tiny.entries(Level.l0)).toBeLessThan(1000 / 16);
});

test.each([1, 2, 3, 5, 13])("%d entries at most", (limit) => {
  const board = openCacheBoard(memory(limit, 1 << 20));
  for (let i = 0; i < 500; i++) store(board, i);
  expect(board.entries(Level.l0)).toBeLessThanOrEqual(limit);
  expect(board.entries(Level.l0)).toBeGreaterThan(limit / 2);
  expect(read(board, 499)).toEqual([...idsOf(499)]);
});

test("putting a known text again takes no other's place", () => {
  const shared = memory(8, 1 << 20);
  const board = openCacheBoard(shared);
  for (let i = 0; i < 8; i++) store(board, i);
  const known = Array.from({ length: 8 }, (_, i) => i).filter((i) => read(board, i) !== undefined);
  for (let n = 0; n < 50; n++) store(board, known[n % known.length]!);
  for (const i of known) expect(read(board, i)).toEqual([...idsOf(i)]);
});

test("a text and its twin in which special tokens are text are two", () => {
  const board = openCacheBoard(memory(100, 1 << 16));
  const text = textOf(1);
  const at = board.append(text, idsOf(1));
  expect(board.put(Level.l0, hash(text), at, text.length, 2, true)).toBe(true);
  expect(board.find(Level.l0, hash(text), text.length)).toBeUndefined();
  expect(board.find(Level.l0, hash(text), text.length, true)).toEqual({ at, length: text.length, count: 2 });
  expect(board.find(Level.l1, hash(text), text.length, true)).toBeUndefined();
});

test("texts of one hash are told apart by their bytes", () => {
  const board = openCacheBoard(memory(100, 1 << 16));
  const [one, two] = [Buffer.from("the one text"), Buffer.from("another text")];
  const at = board.append(one, idsOf(3));
  board.put(Level.l0, 5n, at, one.length, 4);
  const found = board.find(Level.l0, 5n, two.length);
  const content = found && board.contentOf(found);
  expect(content?.text.length).toBe(two.length);
  expect(two.equals(content!.text)).toBe(false);
  expect(one.equals(content!.text)).toBe(true);
});

test("a hash in two halves is the same", () => {
  const board = openCacheBoard(memory(64, 1 << 16));
  const at = board.append(textOf(1), idsOf(1));
  board.put(Level.l0, 0xffff_fff7_8000_0001n, at, textOf(1).length, idsOf(1).length);
  const halves = { low: 0x8000_0001 | 0, high: 0xffff_fff7 | 0 };
  expect(bigOf(halves)).toBe(0xffff_fff7_8000_0001n);
  expect(board.find(Level.l0, halves, textOf(1).length)?.at).toBe(at);
  expect(board.find(Level.l0, { ...halves, low: 1 }, textOf(1).length)).toBeUndefined();
  board.note(halves);
  expect([board.knows(bigOf(halves)), board.knows({ ...halves, high: 7 })]).toEqual([true, false]);
});

test("too large a record is left out", () => {
  const board = openCacheBoard(memory(100, 4000));
  expect(board.append(Buffer.alloc(700), new Uint32Array(100))).toBe(-1);
  expect(board.append(Buffer.alloc(584), new Uint32Array(100))).toBe(0);
  expect(openCacheBoard(memory(100, 0)).append(Buffer.alloc(1), new Uint32Array(1))).toBe(-1);
});

test("positions begin anew after many turns of the ring", () => {
  const shared = memory(1000, 4096);
  const words = new Int32Array(shared);
  const board = openCacheBoard(shared);
  const before = words.slice(0, 48);
  store(board, 0);
  const head = before.findIndex((word, i) => word !== words[i]);
  const last = 512 * Math.floor(2 ** 32 / 512) - 512; // the last turn: the arena has 512 units of 8 bytes
  words[head] = last | 0;
  expect(read(board, 0)).toBeUndefined();
  for (let i = 1; i < 2000; i++) {
    store(board, i);
    expect(read(board, i)).toEqual([...idsOf(i)]);
    if (i > 10) expect(read(board, i - 10)).toEqual([...idsOf(i - 10)]);
  }
  expect(words[head]! >>> 0).toBeLessThan(1 << 20);
});

test("a writer that is a turn of the ring late spoils no answer, wherever it was held up and however far it comes", () => {
  const shared = memory(100, 4096);
  const words = new Int32Array(shared);
  const board = openCacheBoard(shared);
  // of one size, so that all begin where the one of the turn before did
  const textOf = (i: number): Buffer => Buffer.from(`${i} `.padStart(64, "*"));
  const idsOf = (i: number): Uint32Array => new Uint32Array(16).fill(1_000_000 + i);
  const write = (i: number): number => board.append(textOf(i), idsOf(i));
  expect(write(0)).toBe(0);
  const start = words.indexOf(1_000_000) - 4;
  const late = words.slice(start, start + 36);
  let [i, at] = [0, 0];
  do at = write(++i);
  while (at < 512 && i < 100);
  expect(words[start + 4]).toBe(1_000_000 + i);
  const text = textOf(i);
  board.put(Level.l0, hash(text), at, text.length, 16);
  const found = board.find(Level.l0, hash(text), text.length)!;
  const whole = words.slice();
  let refused = 0;
  for (let from = 0; from < late.length; from++)
    for (let to = from; to <= late.length; to++) {
      words.set(late.subarray(from, to), start + from);
      const content = board.contentOf(found);
      const isText = content !== undefined && text.equals(content.text);
      const ids = [...(content?.ids ?? [])];
      if (isText && board.lives(found)) expect(ids).toEqual([...idsOf(i)]);
      else refused++;
      words.set(whole);
    }
  expect(refused).toBeGreaterThan(400);
  expect(refused).toBeLessThan((36 * 37) / 2 + 36);
});

test("ids that another writes over while they are read are not taken", () => {
  const shared = memory(100, 4096);
  const words = new Int32Array(shared);
  const board = openCacheBoard(shared);
  store(board, 5);
  const [text, ids] = [textOf(5), idsOf(5)];
  const found = board.find(Level.l0, hash(text), text.length)!;
  expect([...board.contentOf(found)!.ids]).toEqual([...ids]);
  words[words.indexOf(ids[2]!)] = 7;
  expect(board.lives(found)).toBe(false);
});

describe("damage", () => {
  /** Of every word of the memory, as another writer could leave it behind. */
  test("no word that changes under a reader makes it give wrong ids", () => {
    const next = random(9);
    const shared = memory(8, 2048);
    const board = openCacheBoard(shared);
    for (let i = 0; i < 12; i++) store(board, i);
    const words = new Int32Array(shared);
    const whole = words.slice();
    let refused = 0;
    for (let at = 48; at < words.length; at++) {
      for (const change of [1, 2, -1, 1 << 31, Math.floor(next() * 2 ** 32) | 0]) {
        words[at]! ^= change;
        for (let i = 0; i < 12; i++) {
          const ids = read(board, i);
          if (ids === undefined) refused++;
          else expect(ids).toEqual([...idsOf(i)]);
        }
        words[at] = whole[at]!;
      }
    }
    expect(refused).toBeGreaterThan(1000);
  });

  test("nor do slots whose words are of two writers", () => {
    const shared = memory(4, 1 << 16);
    const board = openCacheBoard(shared);
    const words = new Int32Array(shared);
    const slots: Int32Array[] = [];
    const first = 48 + 16384; // the header's words, then the starts; one group follows
    for (let i = 0; i < 40; i++) {
      words.fill(0, first, first + 16);
      store(board, i);
      const slot = [0, 4, 8, 12].find((at) => words[first + at + 2] !== 0) ?? Number.NaN;
      expect(slot).not.toBeNaN();
      slots.push(words.slice(first + slot, first + slot + 4));
    }
    words.fill(0, first, first + 16);
    for (const a of slots)
      for (const b of slots)
        for (let mask = 1; mask < 15; mask++) {
          for (let word = 0; word < 4; word++) words[first + word] = mask & (1 << word) ? a[word]! : b[word]!;
          for (const i of [slots.indexOf(a), slots.indexOf(b)]) {
            const ids = read(board, i);
            if (ids !== undefined) expect(ids).toEqual([...idsOf(i)]);
          }
        }
  });
});

test("the state of both levels", () => {
  const shared = memory(16, 4096);
  const board = openCacheBoard(shared);
  expect(cacheStats(shared).map(({ level, enabled, entries, bytes }) => [level, enabled, entries, bytes])).toEqual([
    ["l0", true, 0, 0],
    ["l1", true, 0, 0],
  ]);
  for (let i = 0; i < 100; i++) {
    store(board, i);
    board.count(Level.l0, 2);
  }
  const [l0, l1] = cacheStats(shared);
  expect(l0?.insertions).toBe(100);
  expect((l0?.entries ?? 0) + (l0?.evictions ?? 0)).toBe(100);
  expect(l0?.entries).toBeGreaterThan(4);
  expect(l0?.bytes).toBeGreaterThan(2000);
  expect([l1?.entries, l1?.evictions]).toEqual([0, 0]);
  board.switchOff();
  expect(cacheStats(shared).map(({ enabled }) => enabled)).toEqual([false, false]);
});

test("levels that are off, or have no room, are not enabled; both off is no memory to speak of", () => {
  const enabled = (l0: boolean, l1: boolean, l0Entries = 10, bytes = 4096): boolean[] => {
    const board = openCacheBoard(createTokenizerCache({ l0, l1, l0Entries, bytes }));
    return [board.isOn(Level.l0), board.isOn(Level.l1)];
  };
  expect(enabled(true, false)).toEqual([true, false]);
  expect(enabled(false, true)).toEqual([false, true]);
  expect(enabled(true, true, 0)).toEqual([false, true]);
  expect(enabled(true, true, 10, 0)).toEqual([false, false]);
});
