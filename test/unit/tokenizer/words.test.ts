import { describe, expect, test } from "bun:test";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import type { Tokenizer } from "../../../src/tokenizer/tokenizer.ts";
import { editedFiles, random } from "./fixtures.ts";

interface Model {
  vocab: Record<string, number>;
  merges: string[];
}

/**
 * The small tokenizer of that name with random merges of the letters a to h instead of its own, the first `direct` of them of two
 * letters. Where these are few, longer tokens meet where no two letters would.
 */
async function withMerges(
  name: string,
  direct: number,
  next: () => number,
): Promise<{ tokenizer: Tokenizer; model: Model }> {
  let model: Model = { vocab: {}, merges: [] };
  const files = editedFiles(name, (json) => {
    const { vocab } = (json as unknown as { model: Model }).model;
    const words = [..."abcdefgh", "Ġ"];
    const letters = words.length;
    const seen = new Set<string>();
    const merges: string[] = [];
    while (merges.length < 120) {
      const from = merges.length < direct ? letters : words.length;
      const pick = (): string => words[Math.floor(next() * from)]!;
      const [x, y] = [pick(), pick()];
      if (y.includes("Ġ") || x.length + y.length > 12 || seen.has(x + y)) continue;
      seen.add(x + y);
      merges.push(`${x} ${y}`);
      words.push(x + y);
    }
    const ids = Object.fromEntries(Object.entries(vocab).filter(([word]) => [...word].length === 1));
    let id = Math.max(...Object.values(vocab)) + 1;
    for (const merge of merges) ids[merge.replace(" ", "")] = id++;
    model = { vocab: ids, merges };
    Object.assign((json as unknown as { model: Model }).model, model, { ignore_merges: false });
    (json as unknown as { added_tokens: unknown[] }).added_tokens = [];
  });
  return { tokenizer: openTokenizer(await loadTokenizer(files)), model };
}

/** Merging as it is defined: the pair of lowest rank first, the leftmost of equals. */
function merged(word: string, { vocab, merges }: Model): number[] {
  const ranks = new Map(merges.map((merge, rank) => [merge, rank]));
  const parts = [...word];
  while (true) {
    let best = Number.POSITIVE_INFINITY;
    let at = -1;
    for (let i = 0; i + 1 < parts.length; i++) {
      const rank = ranks.get(`${parts[i]} ${parts[i + 1]}`);
      if (rank !== undefined && rank < best) [best, at] = [rank, i];
    }
    if (at < 0) return parts.map((part) => vocab[part]!);
    parts.splice(at, 2, parts[at]! + parts[at + 1]!);
  }
}

describe.each(["cl100k", "deepseek", "o200k"])("words of %s", (name) => {
  test("are what merging gives, whatever their parts and however many are merged in turn", async () => {
    const next = random(7);
    for (const direct of [10, 14, 20, 30, 40, 60]) {
      const { tokenizer, model } = await withMerges(name, direct, next);
      const letter = (): string => "abcdefgh"[Math.floor(next() * 8)]!;
      for (const longest of [4, 12, 30, 70]) {
        const words = Array.from({ length: 600 }, () =>
          Array.from({ length: 1 + Math.floor(next() * longest) }, letter).join(""),
        );
        const text = words.map((word) => ` ${word}`).join("");
        const ids = words.flatMap((word) => merged(`Ġ${word}`, model));
        expect([...tokenizer.encode(text)]).toEqual(ids);
        expect([...tokenizer.encode(text)]).toEqual(ids); // now they are in the cache
      }
    }
  });
});
