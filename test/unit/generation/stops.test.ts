import { describe, expect, test } from "bun:test";
import { StopMatcher } from "../../../src/generation/stops.ts";
import { processorMs } from "../../support/processor-time.ts";
import { random } from "./random.ts";

interface Outcome {
  readonly text: string;
  readonly matched: string | undefined;
}

/** The slow and plain way: of all places where a stop is found and ends behind `free`, the first; of those there the longest. */
function reference(text: string, stops: readonly string[], includeStop: boolean, free = 0): Outcome {
  let start = Number.POSITIVE_INFINITY;
  let matched: string | undefined;
  for (const stop of stops) {
    let at = text.indexOf(stop);
    while (at >= 0 && at + stop.length <= free) at = text.indexOf(stop, at + 1);
    if (at < 0 || at > start || (at === start && stop.length <= matched!.length)) continue;
    start = at;
    matched = stop;
  }
  if (matched === undefined) return { text, matched };
  return { text: text.slice(0, includeStop ? start + matched.length : start), matched };
}

/** How a text may go on as far as stops are concerned: not at all, with what fits none of them, with the rest of one. */
function continuations(text: string, stops: readonly string[]): readonly string[] {
  const rests = stops.flatMap((stop) =>
    Array.from({ length: stop.length - 1 }, (_, n) => n + 1)
      .filter((n) => text.endsWith(stop.slice(0, n)))
      .map((n) => stop.slice(n)),
  );
  return ["", "\0", ...rests];
}

/** What of a text is certain however it goes on: text that can be given out, and whether the match is found. */
function certain(text: string, stops: readonly string[], includeStop: boolean, free: number): [string, boolean] {
  const outcomes = continuations(text, stops).map((more) => reference(text + more, stops, includeStop, free));
  const first = outcomes[0]!;
  let length = Math.min(...outcomes.map((outcome) => outcome.text.length));
  while (outcomes.some((outcome) => outcome.text.slice(0, length) !== first.text.slice(0, length))) length--;
  const found = first.matched !== undefined && outcomes.every(({ matched }) => matched === first.matched);
  return [first.text.slice(0, length), found];
}

/**
 * Feeds pieces, of which the first `silent` don't count, and checks after each that all was given out that is certain, and that
 * the match is told as soon as it is.
 */
function run(pieces: readonly string[], stops: readonly string[], includeStop: boolean, silent = 0): Outcome {
  const matcher = new StopMatcher(stops, includeStop);
  const free = pieces.slice(0, silent).join("").length;
  let seen = "";
  let text = "";
  let found = false;
  pieces.forEach((piece, i) => {
    seen += piece;
    text += matcher.push(piece, i >= silent);
    if (found) return; // the rest is compared at the end
    const expected = certain(seen, stops, includeStop, Math.min(free, seen.length));
    found = expected[1];
    expect([seen, text, matcher.matched !== undefined]).toEqual([seen, ...expected]);
  });
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
    ["xSTOPy", ["TOP", "STOP"]],
    ["ld> ld> END x", ["ld> END of", "END"]],
    ["rld> END of", ["END", "ld> END of"]],
    ["STOP here", ["STOP", "STOP here"]],
    ["a STOP her", ["STOP here", "STOP", "her"]],
    ["abcabdabc", ["abcabc", "bc", "c"]],
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

test("random texts, stops and splits over a small alphabet, whose first pieces may not count", () => {
  let matches = 0;
  for (let seed = 1; seed <= 12_000; seed++) {
    const { below, pick } = random(seed);
    const alphabet = "abc".slice(0, 2 + below(2));
    const word = (length: number) => Array.from({ length }, () => pick([...alphabet])).join("");
    const stops = Array.from({ length: 1 + below(4) }, () => word(1 + below(below(4) === 0 ? 12 : 5)));
    const text = word(below(24));
    const pieces: string[] = [];
    for (let at = 0; at < text.length; ) {
      const length = below(5); // empty pieces too
      pieces.push(text.slice(at, at + length));
      at += length;
    }
    const includeStop = below(2) === 1;
    const silent = below(2) * below(pieces.length + 1);
    const expected = reference(text, stops, includeStop, pieces.slice(0, silent).join("").length);
    if (expected.matched !== undefined) matches++;
    expect({ seed, ...run(pieces, stops, includeStop, silent) }).toEqual({ seed, ...expected });
    const others = stops.toSorted(() => below(3) - 1);
    expect({ seed, ...run(pieces, others, includeStop, silent) }).toEqual({ seed, ...expected });
  }
  expect(matches).toBeGreaterThan(5000);
  expect(matches).toBeLessThan(11_500);
});

test("the match that starts first wins, of those that start together the longest, in whatever order they are named", () => {
  for (const [text, stops, expected] of [
    ["xaby", ["b", "ab"], { text: "x", matched: "ab" }],
    ["xabcy", ["abc", "b"], { text: "x", matched: "abc" }],
    ["xabcy", ["abc", "abcy"], { text: "x", matched: "abcy" }],
    ["xabcz", ["abc", "abcy"], { text: "x", matched: "abc" }],
    ["xabz", ["abc", "b"], { text: "xa", matched: "b" }],
    ["STOPTOP", ["TOP", "STOP"], { text: "", matched: "STOP" }],
  ] as const) {
    expect(run([text], stops, false)).toEqual(expected);
    expect(run([...text], stops.toReversed(), false)).toEqual(expected);
  }
});

test("a match waits no longer than a better one can come", () => {
  const at = (stops: readonly string[], ...pieces: string[]) => {
    const matcher = new StopMatcher(stops, false);
    const given = pieces.map((piece) => [matcher.push(piece), matcher.matched]);
    return [...given, [matcher.end(), matcher.matched]];
  };
  expect(at(["TOP", "STOP"], "a STOP")).toEqual([
    ["a ", "STOP"],
    ["", "STOP"],
  ]);
  expect(at(["ld> END of", "END"], "world> END", " ", "x")).toEqual([
    ["wor", undefined],
    ["", undefined],
    ["ld> ", "END"],
    ["", "END"],
  ]);
  expect(at(["STOP here", "STOP"], "a STOP", " he")).toEqual([
    ["a ", undefined],
    ["", undefined],
    ["", "STOP"],
  ]);
});

test("a stop that is shown delays nothing before it is found", () => {
  const matcher = new StopMatcher(["STOP here", "OP"], true);
  expect(matcher.push("a ST")).toBe("a ST");
  expect(matcher.push("OP")).toBe("OP");
  expect(matcher.matched).toBeUndefined();
  expect(matcher.push(" her")).toBe("");
  expect([matcher.end(), matcher.matched]).toEqual(["", "OP"]);
});

test("a text that is ended early may go on", () => {
  const matcher = new StopMatcher(["STOP"], false);
  expect(matcher.push("a ST") + matcher.end()).toBe("a ST");
  expect(matcher.push("OP and STOP")).toBe("OP and ");
  expect(matcher.matched).toBe("STOP");
});

test("empty stops are ignored", () => {
  const matcher = new StopMatcher(["", "b"], false);
  expect(matcher.push("aab")).toBe("aa");
  expect(matcher.matched).toBe("b");
  expect(new StopMatcher([""], false).push("all")).toBe("all");
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
  const start = processorMs();
  for (let token = 0; token < 6000; token++) expect(matcher.push(" a")).toBe("");
  expect(processorMs() - start).toBeLessThan(3000);
  expect(matcher.end()).toBe(" a".repeat(6000));
  // the same where matches are complete all the time and wait for longer ones
  const waiting = new StopMatcher([...stops, ...Array.from({ length: 60 }, (_, i) => " a".repeat(1 + i))], false);
  const again = processorMs();
  for (let token = 0; token < 1900; token++) expect(waiting.push(" a")).toBe("");
  expect(processorMs() - again).toBeLessThan(3000);
  expect([waiting.end(), waiting.matched]).toEqual(["", " a".repeat(60)]);
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
