/** The hashes of a text in the tokenizer's buffer: of all its bytes, of its place and size, and of a secret. */
import { expect, test } from "bun:test";
import type { TextBuffer } from "../../../src/tokenizer/tokenizer.ts";
import { random, smallTokenizer } from "./fixtures.ts";

const buffer = (await smallTokenizer("cl100k")).buffer as TextBuffer;
const FIRST = 256;
const SEED = 0x1234_5678_9abc_def0n;
function hashes(text: string, seed = SEED): { start: string; whole: string } {
  buffer.write(text);
  const [a, b, c, d] = buffer.digest(seed, FIRST);
  return { start: `${a} ${b}`, whole: `${c} ${d}` };
}

const next = random(5);
const textOf = (size: number): string =>
  Array.from({ length: size }, () => String.fromCharCode(32 + Math.floor(next() * 90))).join("");

test.each([64, 65, 127, 128, 255, 256, 257, 300, 319, 320, 321, 1000])(
  "of %d bytes each one counts, and only those of the start for the start",
  (size) => {
    const text = textOf(size);
    const { start, whole } = hashes(text);
    expect(hashes(text)).toEqual({ start, whole });
    const wholes = new Set([whole]);
    for (let i = 0; i < size; i++) {
      const changed = hashes(`${text.slice(0, i)}~${text.slice(i + 1)}`);
      wholes.add(changed.whole);
      if (size >= FIRST) expect(changed.start === start).toBe(i >= FIRST);
    }
    expect(wholes.size).toBe(size + 1);
  },
);

test("both halves tell texts apart", () => {
  const [lows, highs] = [new Set<string>(), new Set<string>()];
  const text = textOf(4000);
  for (let size = 64; size < 4000; size++) {
    const [low, high] = hashes(text.slice(0, size)).whole.split(" ");
    lows.add(low!);
    highs.add(high!);
  }
  // of 4000 numbers of 32 bits two are the same once in 500 times
  expect(lows.size).toBeGreaterThan(3934);
  expect(highs.size).toBeGreaterThan(3934);
});

test("texts of one pattern that differ in their numbers are told apart", () => {
  const rest = textOf(700);
  const seen = new Set<string>();
  for (let i = 0; i < 30_000; i++) {
    const number = String(i).padStart(6, "0");
    seen.add(hashes(`item ${number}, ${rest} no. ${number}${rest}`).whole);
  }
  expect(seen.size).toBe(30_000);
});

test("the size counts, where one byte comes again and again", () => {
  const seen = new Set(Array.from({ length: 500 }, (_, i) => hashes(" ".repeat(64 + i)).whole));
  expect(seen.size).toBe(500);
});

test("parts that change places make another text", () => {
  const parts = Array.from({ length: 40 }, () => textOf(16));
  const seen = new Set([hashes(parts.join("")).whole]);
  for (let i = 0; i < 40; i++)
    for (let j = 0; j < i; j++) {
      const other = [...parts];
      [other[i], other[j]] = [parts[j]!, parts[i]!];
      seen.add(hashes(other.join("")).whole);
    }
  expect(seen.size).toBe((40 * 39) / 2 + 1);
});

test("texts that start alike have one start, whatever follows; another seed gives others", () => {
  const start = textOf(FIRST);
  const starts = new Set(Array.from({ length: 300 }, (_, i) => hashes(start + textOf(i)).start));
  expect(starts.size).toBe(1);
  const seeds = new Set(Array.from({ length: 64 }, (_, i) => hashes(start, 1n << BigInt(i)).whole));
  expect(seeds.size).toBe(64);
});

test("what was in the buffer before does not count", () => {
  const text = textOf(1001);
  const before = hashes(text);
  for (const other of ["\0", "a", "\xff"]) {
    buffer.write(other.repeat(3000));
    expect(hashes(text)).toEqual(before);
  }
});
