/** Long, nested and many added tokens: found as by plain search, and loaded in a time that grows no faster than they do. */
import { describe, expect, test } from "bun:test";
import { cutTokens } from "../../../src/tokenizer/image/cuts.ts";
import { recognise } from "../../../src/tokenizer/image/recognise.ts";
import { type Found, textSearch } from "../../../src/tokenizer/image/text-search.ts";
import { type AddedTokenJson, parseTokenizerJson } from "../../../src/tokenizer/image/tokenizer-json.ts";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import { editedFiles, random } from "./fixtures.ts";

/** Does `b` lie in `a`, or may it begin there? */
function overlaps(a: string, b: string): boolean {
  if (a.includes(b)) return true;
  for (let n = 1; n < a.length && n < b.length; n++) if (a.endsWith(b.slice(0, n))) return true;
  return false;
}

/** The text that begins first, of those the longest one. */
function plainFirst(texts: readonly string[], text: string, at: number): Found | undefined {
  for (let from = at; from < text.length; from++) {
    const here = texts.map((t) => (text.startsWith(t, from) ? t.length : 0));
    const longest = Math.max(...here);
    if (longest > 0) return { index: here.indexOf(longest), from, to: from + longest };
  }
  return undefined;
}

test("texts that lie in others, and those that a text meets, are those of a plain search", () => {
  const next = random(11);
  const some = (letters: string, most: number): string =>
    Array.from({ length: 1 + Math.floor(next() * most) }, () => letters[Math.floor(next() * letters.length)]).join("");
  let met = 0;
  for (let round = 0; round < 3000; round++) {
    const letters = ["ab", "abc", "a😀é", "abcdefgh"][round % 4]!;
    const texts = [...new Set(Array.from({ length: 1 + Math.floor(next() * 8) }, () => some(letters, 7)))];
    const { inside, meets, next: first } = textSearch(texts);
    const plain = texts.flatMap((text, i) =>
      texts.some((other) => other !== text && other.includes(text)) ? [i] : [],
    );
    expect([texts, [...inside].sort((a, b) => a - b)]).toEqual([texts, plain]);
    for (const text of [...texts, some(letters, 7), some(letters, 12)]) {
      const place = meets(text);
      if (place >= 0) expect([text, texts[place], overlaps(text, texts[place]!)]).toEqual([text, texts[place], true]);
      else expect([text, texts.some((other) => overlaps(text, other))]).toEqual([text, false]);
      if (place >= 0) met++;
      for (let at = 0; at <= text.length; at++)
        expect([text, texts, first(text, at)]).toEqual([text, texts, plainFirst(texts, text, at)]);
    }
  }
  expect(met).toBeGreaterThan(3000);
});

const token = (content: string, more: object = {}): object => ({
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
  ...more,
});
const numbered = (tokens: readonly object[]): unknown => tokens.map((t, i) => ({ id: 1_000_000 + i, ...t }));
const files = (name: string, tokens: readonly object[]): Map<string, Uint8Array> =>
  editedFiles(name, (json) => Object.assign(json, { added_tokens: numbered(tokens) }));

const letters = (n: number): string =>
  Array.from({ length: n }, (_, i) => "abcdefghij"[(i * i + (i >> 3)) % 10]).join("");
const HOSTILE: Readonly<Record<string, () => readonly object[]>> = {
  "one of 16,000 letters": () => [token(letters(16_000))],
  "one of 16,000 equal letters": () => [token("a".repeat(16_000))],
  "2,000 nested ones": () => Array.from({ length: 2000 }, (_, i) => token("a".repeat(i + 1))),
  "2,000 nested ones from the end": () => Array.from({ length: 2000 }, (_, i) => token(`${"a".repeat(i)}b`)),
  "100,000": () => Array.from({ length: 100_000 }, (_, i) => token(`<|special_${i}|>`)),
  "20,000, half of them normalized": () =>
    Array.from({ length: 20_000 }, (_, i) =>
      token(`<|special_${i}|>`, i % 2 ? { normalized: true, special: false } : {}),
    ),
  "a long one and a long normalized one": () => [
    token(`<${"a".repeat(16_000)}`),
    token(`${"b".repeat(16_000)}>`, { normalized: true }),
  ],
};

/** Milliseconds that this process worked since then, however busy the machine is with other things. */
function cpuMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

describe("added tokens", () => {
  for (const [what, tokens] of Object.entries(HOSTILE)) {
    for (const name of ["cl100k", "gemma", "wordpiece"]) {
      test(`${what} load with ${name} in little time`, async () => {
        const model = files(name, tokens());
        const before = process.cpuUsage();
        const tokenizer = openTokenizer(await loadTokenizer(model));
        expect(cpuMs(before)).toBeLessThan(10_000);
        const [{ content }] = tokens().slice(-1) as [{ content: string }];
        expect([...tokenizer.encode(content)]).toEqual([tokenizer.tokenId(content) as number]);
      }, 60_000);
    }
  }
  for (const name of ["cl100k", "gemma", "wordpiece"]) {
    test(`that are long take no longer in a text with ${name}, whether they lie in it or nearly do`, async () => {
      for (const content of ["a".repeat(16_000), `${"a".repeat(16_000)}c`]) {
        const tokenizer = openTokenizer(await loadTokenizer(files(name, [token(content), token("<x>")])));
        const text = `${"a".repeat(15_999)}b`.repeat(5);
        const before = process.cpuUsage();
        const ids = tokenizer.encode(`<x>${text}${content}<x>`);
        expect(cpuMs(before)).toBeLessThan(1000);
        const id = (of: string): number => tokenizer.tokenId(of) as number;
        expect([...ids]).toEqual([id("<x>"), ...tokenizer.encode(text), id(content), id("<x>")]);
        expect(ids.length).toBeGreaterThan(3);
      }
    }, 20_000);
  }
  test("that lie in others are no cuts", () => {
    const json = parseTokenizerJson(
      files(
        "cl100k",
        ["<a>", "<a>b", "c<a>", "d", "e"].map((t) => token(t)),
      ).get("tokenizer.json")!,
    );
    const known = recognise(json);
    if ("unsupported" in known) throw new Error(known.unsupported);
    expect(cutTokens(json, known).map((t: AddedTokenJson) => t.content)).toEqual(["<a>b", "c<a>", "d", "e"]);
  });
  test("of more than 4 MB are not for the kernel", () => {
    const json = parseTokenizerJson(files("cl100k", [token("x".repeat(5_000_000))]).get("tokenizer.json")!);
    expect(recognise(json)).toEqual({ unsupported: "added tokens of more than 4 MB" });
  });
  test("of more than 256 bytes are not for the kernel", () => {
    const of = (content: string) =>
      recognise(parseTokenizerJson(files("cl100k", [token(content)]).get("tokenizer.json")!));
    expect(of("中".repeat(85))).not.toHaveProperty("unsupported");
    expect(of(`${"中".repeat(85)}xx`)).toEqual({ unsupported: "an added token of more than 256 bytes" });
  });
});
