/** The string generator of make_golden.py in TypeScript: same seed, same strings. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const table = JSON.parse(readFileSync(join(import.meta.dir, "parts.json"), "utf8")) as {
  classes: string[];
  parts: Record<string, string[]>;
};
const PARTS = table.parts;
const KINDS = [...table.classes, "digits", "hex", "repeat", "marked", "random", "special", "broken"];
const HEX = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const CHARS = ["a", " ", "\n", "=", "-", "1", "あ", "é", "👍", "\t", "A", "한", ".", "!", "\u0301", "\u3000", "_", "<", "ש", "x"];

/** mulberry32. */
export class Rng {
  private s: number;
  constructor(seed: number) {
    this.s = seed;
  }
  next(): number {
    this.s = (this.s + 0x6d2b79f5) | 0;
    let t = this.s;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= (t + Math.imul(t ^ (t >>> 7), t | 61)) | 0;
    return (t ^ (t >>> 14)) >>> 0;
  }
  below(n: number): number {
    return Math.floor((this.next() * n) / 4294967296);
  }
  pick<T>(a: readonly T[]): T {
    return a[this.below(a.length)]!;
  }
}

function part(r: Rng, kind: string, specials: readonly string[]): string {
  const list = PARTS[kind];
  if (list) return r.pick(list);
  let out = "";
  switch (kind) {
    case "digits":
      for (let n = 1 + r.below(12); n > 0; n--) out += r.below(10);
      return out;
    case "hex":
      for (let n = 4 + r.below(60); n > 0; n--) out += HEX[r.below(64)];
      return out;
    case "repeat": {
      const c = r.pick(CHARS);
      return c.repeat(1 + r.below(64));
    }
    case "marked":
      for (let n = 1 + r.below(4); n > 0; n--) {
        out += r.pick(PARTS["latin"]!);
        out += r.pick(PARTS["marks"]!);
      }
      return out;
    case "random":
      for (let n = 1 + r.below(8); n > 0; n--) {
        const k = r.below(10);
        const cp =
          k < 4
            ? 1 + r.below(0xd7ff)
            : k < 5
              ? 0xe000 + r.below(0x2000)
              : k < 8
                ? 0x10000 + r.below(0x10000)
                : k < 9
                  ? 0x20000 + r.below(0x20000)
                  : 0x10000 + r.below(0x100000);
        out += String.fromCodePoint(cp);
      }
      return out;
  }
  if (specials.length === 0) return "";
  const x = r.pick(specials);
  if (kind === "special") return x;
  const points = [...x];
  return points.slice(0, r.below(points.length)).join("");
}

/** The next random text of a kind that tokenizers stumble over. */
export function string(r: Rng, specials: readonly string[]): string {
  const main = r.below(KINDS.length);
  let n = 1 + r.below(12);
  if (r.below(50) === 0) n = 80 + r.below(160);
  let out = "";
  for (; n > 0; n--) {
    const kind = r.below(3) > 0 ? KINDS[main]! : KINDS[r.below(KINDS.length)]!;
    out += part(r, kind, specials);
    const g = r.below(8);
    if (g < 3) out += " ";
    else if (g === 3) out += "\n";
    else if (g === 4) out += r.pick(PARTS["space"]!);
  }
  return out;
}
