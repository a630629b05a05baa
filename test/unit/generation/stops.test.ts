import { describe, expect, test } from "bun:test";
import { StopMatcher } from "../../../src/generation/stops.ts";
import { random } from "./random.ts";

interface Outcome {
  readonly text: string;
  readonly matched: string | undefined;
}

/** The slow and plain way: look at every prefix of the whole text in turn; the first stop named that ends it ends the text. */
function reference(text: string, stops: readonly string[], includeStop: boolean): Outcome {
  for (let end = 1; end <= text.length; end++) {
    const found = stops.find((stop) => text.slice(0, end).endsWith(stop));
    if (found !== undefined) return { text: text.slice(0, includeStop ? end : end - found.length), matched: found };
  }
  return { text, matched: undefined };
}

/** Length of the longest end of a text that begins a stop without being all of it. */
function undecided(text: string, stops: readonly string[]): number {
  let longest = 0;
  for (const stop of stops)
    for (let n = 1; n < stop.length; n++) if (text.endsWith(stop.slice(0, n))) longest = Math.max(longest, n);
  return longest;
}

/** Feeds pieces, and checks after each that all was given out but what could still become a stop. */
function run(pieces: readonly string[], stops: readonly string[], includeStop: boolean): Outcome {
  const matcher = new StopMatcher(stops, includeStop);
  let seen = "";
  let text = "";
  for (const piece of pieces) {
    seen += piece;
    text += matcher.push(piece);
    if (matcher.matched !== undefined) continue;
    const certain = seen.slice(0, seen.length - undecided(seen, stops));
    if (text !== certain) throw new Error(`gave out ${JSON.stringify(text)}, not ${JSON.stringify(certain)}`);
  }
  return { text: text + matcher.end(), matched: matcher.matched };
}

function* splits(text: string): Generator<string[]> {
  for (let mask = 0; mask < 1 << Math.max(0, text.length - 1); mask++) {
    const pieces: string[] = [];
    let from = 0;
    for (let i = 1; i < text.length; i++) {
      if ((mask >> (i - 1)) & 1) {
        pieces.push(text.slice(from, i));
        from = i;
      }
    }
    pieces.push(text.slice(from));
    yield pieces;
  }
}

describe("every split of a text gives what the whole text gives", () => {
  test.each<[string, string[]]>([
    ["abcSTOPdef", ["STOP"]],
    ["a\n\nUser: b", ["\n\n", "User:"]],
    ["aabaabaac", ["aabaac"]],
    ["abababc", ["ababc", "babab"]],
    ["xENDy", ["END", "EN"]],
    ["xENDy", ["NDy", "ENDy!"]],
    ["STSTOSTOP", ["STOP"]],
    ["nothing here", ["STOP", "eher", "e!"]],
    ["ends with ST", ["STOP"]],
    ["STOP", ["STOP"]],
    ["a😀b😁c😂", ["😁c"]],
    ["😀😀😁", ["😀😁"]],
    ["x</s>", ["</s>", "</"]],
    ["日本語です", ["語で"]],
  ])("%j with %j", (text, stops) => {
    for (const includeStop of [false, true]) {
      const expected = reference(text, stops, includeStop);
      for (const pieces of splits(text)) {
        expect({ pieces, ...run(pieces, stops, includeStop) }).toEqual({ pieces, ...expected });
      }
    }
  });
});

test("random texts, stops and splits over a small alphabet", () => {
  let matches = 0;
  for (let seed = 1; seed <= 20_000; seed++) {
    const { below, pick } = random(seed);
    const alphabet = "abc".slice(0, 2 + below(2));
    const word = (length: number) => Array.from({ length }, () => pick([...alphabet])).join("");
    const stops = Array.from({ length: 1 + below(4) }, () => word(1 + below(5)));
    const text = word(below(24));
    const pieces: string[] = [];
    for (let at = 0; at < text.length; ) {
      const length = below(5); // empty pieces too
      pieces.push(text.slice(at, at + length));
      at += length;
    }
    const includeStop = below(2) === 1;
    const expected = reference(text, stops, includeStop);
    if (expected.matched !== undefined) matches++;
    expect({ seed, ...run(pieces, stops, includeStop) }).toEqual({ seed, ...expected });
  }
  expect(matches).toBeGreaterThan(8000);
  expect(matches).toBeLessThan(19_500);
});

test("of stops that end together the first named counts, of others the one that ends first", () => {
  expect(run(["xaby"], ["b", "ab"], false)).toEqual({ text: "xa", matched: "b" });
  expect(run(["xaby"], ["ab", "b"], false)).toEqual({ text: "x", matched: "ab" });
  expect(run(["xabcy"], ["abc", "b"], false)).toEqual({ text: "xa", matched: "b" });
  expect(run(["xabcy"], ["abcy", "abc"], true)).toEqual({ text: "xabc", matched: "abc" });
});

test("a stop may begin in text that does not count, but not end there", () => {
  const matcher = new StopMatcher(["oHe"], false);
  let text = "";
  for (let token = 1; token <= 5; token++) text += matcher.push("Hello", token > 3);
  expect(text).toBe("HelloHelloHell");
  expect(matcher.matched).toBe("oHe");
});

test("hostile stops cost time linear in the text", () => {
  const stops = Array.from({ length: 60 }, (_, i) => `${" a".repeat(1950 + i)}b${" a".repeat(4000)}`);
  const matcher = new StopMatcher([...stops, " a".repeat(20_000)], false);
  const start = performance.now();
  for (let token = 0; token < 6000; token++) expect(matcher.push(" a")).toBe("");
  expect(performance.now() - start).toBeLessThan(3000);
  expect(matcher.end()).toBe(" a".repeat(6000));
});

test("after a match nothing more comes out", () => {
  const matcher = new StopMatcher(["."], false);
  expect(matcher.push("one. two")).toBe("one");
  expect(matcher.push(" three.")).toBe("");
  expect(matcher.end()).toBe("");
});

test("only what could become a stop is held back", () => {
  const matcher = new StopMatcher(["STOP"], false);
  expect(matcher.push("abcS")).toBe("abc");
  expect(matcher.push("Tx")).toBe("STx");
  expect(matcher.push("STO")).toBe("");
  expect(matcher.end()).toBe("STO");
});

test("a character is never halved by a stop that shares its first half with it", () => {
  // U+1F600 and U+1F601 differ in the second half of their surrogate pairs only
  const matcher = new StopMatcher(["😁!"], false);
  expect(matcher.push("😀")).toBe("😀");
  expect(matcher.push("😁")).toBe("");
  expect(matcher.push("?")).toBe("😁?");
});

test("random texts whose first pieces do not count: a stop counts by where it ends, and may begin there", () => {
  for (let seed = 1; seed <= 10_000; seed++) {
    const { below, pick } = random(seed);
    const word = (length: number) => Array.from({ length }, () => pick(["a", "b"])).join("");
    const stops = Array.from({ length: 1 + below(3) }, () => word(1 + below(4)));
    const pieces = Array.from({ length: 1 + below(8) }, () => word(below(4)));
    const silent = below(pieces.length + 1);
    const free = pieces.slice(0, silent).join("").length;
    const text = pieces.join("");
    let expected: Outcome = { text, matched: undefined };
    for (let end = free + 1; end <= text.length && expected.matched === undefined; end++) {
      const matched = stops.find((stop) => text.slice(0, end).endsWith(stop));
      if (matched !== undefined) expected = { text: text.slice(0, end - matched.length), matched };
    }
    const matcher = new StopMatcher(stops, false);
    let given = pieces.map((piece, i) => matcher.push(piece, i >= silent)).join("");
    given += matcher.end();
    expect({ seed, text: given, matched: matcher.matched }).toEqual({ seed, ...expected });
  }
});
