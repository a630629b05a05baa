import { expect, test } from "bun:test";
import { hasLongRuns, rustNfc } from "../../../src/tokenizer/nfc.ts";
import { processorMs } from "../../support/processor-time.ts";
import { random } from "./fixtures.ts";

/** All marks of the Unicode blocks below U+3100 that the Rust library's tables know as this engine's do. */
const marks = Array.from({ length: 0x3100 }, (_, c) => String.fromCodePoint(c)).filter(
  (c) => /\p{M}/u.test(c) && rustNfc(`${c}\u0301`) === `${c}\u0301`.normalize("NFC") && !isNewer(c),
);

/** Does the engine know a class for the mark where the Rust library knows none? */
function isNewer(c: string): boolean {
  return ["\u0334", "\u0345"].some(
    (other) =>
      rustNfc(other + c) !== (other + c).normalize("NFC") || rustNfc(c + other) !== (c + other).normalize("NFC"),
  );
}

test("long runs of marks come out as the engine normalizes them", () => {
  const next = random(11);
  const pick = (list: readonly string[]): string => list[Math.floor(next() * list.length)]!;
  expect(marks.length).toBeGreaterThan(1000);
  for (let round = 0; round < 500; round++) {
    const few = Array.from({ length: 1 + Math.floor(next() * 8) }, () => pick(marks));
    const pool = round % 3 === 0 ? marks : few;
    const text =
      pick(["", "e", "ệ", "\u0344"]) +
      Array.from({ length: 5 + Math.floor(next() * 90) }, () => pick(pool)).join("") +
      pick(["", "x"]);
    expect([text, rustNfc(text)]).toEqual([text, text.normalize("NFC")]);
  }
});

test("a run counts as long above 16 marks", () => {
  expect(hasLongRuns("e\u0301".repeat(100))).toBe(false);
  expect(hasLongRuns(`e${"\u0301".repeat(16)}`)).toBe(false);
  expect(hasLongRuns(`e${"\u0301".repeat(17)}`)).toBe(true);
});

test("a million marks take no minutes", () => {
  const start = processorMs();
  expect(rustNfc(`a${"\u0301\u0323".repeat(500_000)}`)).toHaveLength(1_000_000);
  expect(processorMs() - start).toBeLessThan(3000);
});
