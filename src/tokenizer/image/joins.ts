import type { Vocabulary } from "./vocabulary.ts";

/** Above this many pairs of characters a merge of partial characters is noted by its bytes instead. */
const MAX_PAIRS = 5000;

const isTail = (b: number): boolean => (b & 0xc0) === 0x80;
const isThreeByteLead = (b: number): boolean => (b & 0xf0) === 0xe0;

/**
 * Pairs of neighbouring three-byte characters that some merge joins, as code points; a partial character stands for all that it
 * may belong to. Where that is too many, `addBorder` gets the low bits of the last and of the first byte.
 */
export function joinedCharacters(
  v: Vocabulary,
  add: (a: number, b: number) => void,
  addBorder: (tail: number, lead: number) => void,
): void {
  const { merges, offsets, bytes } = v;
  const seen = new Set<number>();
  for (let m = 0; m < merges.length; m += 3) {
    const x0 = offsets[merges[m]!]!;
    const x1 = offsets[merges[m]! + 1]!;
    const y0 = offsets[merges[m + 1]!]!;
    const y1 = offsets[merges[m + 1]! + 1]!;
    if (!isThreeByteLead(bytes[y0]!)) continue;
    let i = x1 - 1;
    while (i >= x0 && isTail(bytes[i]!)) i--;
    const tails = x1 - 1 - i;
    if (i >= x0 ? !isThreeByteLead(bytes[i]!) || tails !== 2 : tails > 2) continue;
    // the last character of the left token, whose known bytes stand at its end, and the first of the right one
    const known = i >= x0 ? 3 : tails;
    const byte = (at: number, from: number, to: number): number => (at >= from && at < to ? bytes[at]! : ANY);
    const [a, b, c] = [byte(x1 - 3, x1 - known, x1), byte(x1 - 2, x1 - known, x1), byte(x1 - 1, x1 - known, x1)];
    const [d, e, f] = [bytes[y0]!, byte(y0 + 1, y0, y1), byte(y0 + 2, y0, y1)];
    const key = ((((a * 257 + b) * 257 + c) * 257 + d) * 257 + e) * 257 + f;
    if (seen.has(key)) continue;
    seen.add(key);
    const left = [a, b, c];
    const right = [d, e, f];
    const lefts = codePoints(left);
    const rights = codePoints(right);
    if (lefts.length * rights.length > MAX_PAIRS) addBorder(left[2]! & 63, right[0]! & 15);
    else for (const a of lefts) for (const b of rights) add(a, b);
  }
}

/** Stands for any byte in a partial character. */
const ANY = 256;

/** Code points of a three-byte sequence. */
function codePoints([a = ANY, b = ANY, c = ANY]: readonly number[]): number[] {
  const out: number[] = [];
  for (const i of choices(a, 15)) {
    for (const j of choices(b, 63)) {
      for (const k of choices(c, 63)) {
        const codePoint = (i << 12) | (j << 6) | k;
        if (codePoint >= 0x800) out.push(codePoint);
      }
    }
  }
  return out;
}

const choices = (byte: number, mask: number): number[] =>
  byte === ANY ? Array.from({ length: mask + 1 }, (_, i) => i) : [byte & mask];
