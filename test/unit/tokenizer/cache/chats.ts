/** Chats for the caches: turns of random text between special tokens, long enough that each turn ends at a cut that is kept. */
import type { Tokenizer } from "../../../../src/tokenizer/tokenizer.ts";
import { type Rng, string } from "../../../golden/tokenizer/strings.ts";

/** At least `size` characters, mostly random strings of the kind that tokenizers stumble over. */
export function filler(random: Rng, specials: readonly string[], size: number): string {
  let out = "";
  while (out.length < size) out += string(random, random.below(4) === 0 ? specials : []);
  return out;
}

export const sameIds = (a: Uint32Array | undefined, b: Uint32Array | undefined): boolean =>
  a !== undefined && b !== undefined && a.length === b.length && a.every((id, i) => id === b[i]);

/** Fails with the place where they part, which says more than thousands of ids. */
export function expectSame(tokenizer: Tokenizer, cached: Tokenizer, text: string): void {
  const [right, got] = [tokenizer.encode(text), cached.encode(text)];
  if (sameIds(right, got)) return;
  const at = right.findIndex((id, i) => id !== got[i]);
  throw new Error(
    `ids part at ${at}: ${right.slice(at, at + 8)} / ${got.slice(at, at + 8)}; lengths ${right.length}, ${got.length}`,
  );
}
