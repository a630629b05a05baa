/**
 * What the parts of the Rust `tokenizers` library know about characters. Their Unicode tables are of different ages, and none is the
 * JS engine's. The tables were asked from the library (0.23.3) for every code point: test/golden/tokenizer-general/make_characters.py
 * documents their form.
 */
import { readFileSync } from "node:fs";
import charactersFile from "./characters.rle" with { type: "file" };
import type { Ranges } from "./ranges.ts";
import scriptsFile from "./scripts.rle" with { type: "file" };

/** General categories by their number, as Oniguruma has them. */
export const CATEGORIES: readonly string[] =
  "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split(" ");

export const Is = {
  /** `\w` of Oniguruma, then `\w` and `\s` of the regex crate. */
  word: 1 << 5,
  regexWord: 1 << 6,
  regexSpace: 1 << 7,
  /** White space and numbers of Rust's standard library. */
  white: 1 << 8,
  numeric: 1 << 9,
  /** Punctuation of the pre-tokenizers `Punctuation` and `BertPreTokenizer`. */
  punctuation: 1 << 10,
  /** What BertNormalizer removes as control characters, and as accents. */
  control: 1 << 11,
  mark: 1 << 12,
  /** What StripAccents removes. */
  combining: 1 << 13,
} as const;

/** Grapheme classes, as far as they decide how Precompiled reads a text. */
export const Grapheme = {
  any: 0,
  incb: 1,
  joins: 2,
  linker: 3,
  control: 4,
  prepend: 5,
  pictographic: 6,
  consonant: 7,
  l: 8,
  v: 9,
  t: 10,
  lv: 11,
  lvt: 12,
} as const;

const CODE_POINTS = 0x110000;
const PAGE = 8;

interface Table {
  /** Ends and values of the runs, in order. */
  readonly ends: Uint32Array;
  readonly values: Uint32Array;
  /** Page by code point >> 8, and pages of 256 values, equal ones once. */
  readonly index: Uint16Array;
  readonly pages: Uint32Array;
}

/** Reads runs of (length, value), both unsigned LEB128, and what numbers follow. */
function readTable(file: string): { table: Table; rest: number[] } {
  const bytes = readFileSync(file);
  let i = 0;
  const next = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const b = bytes[i++]!;
      value |= (b & 127) << shift;
      if (b < 128) return value;
    }
  };
  const ends: number[] = [];
  const values: number[] = [];
  for (let at = 0; at < CODE_POINTS; ) {
    ends.push((at += next()));
    values.push(next());
  }
  const rest: number[] = [];
  while (i < bytes.length) rest.push(next());
  return { table: paged(Uint32Array.from(ends), Uint32Array.from(values)), rest };
}

function paged(ends: Uint32Array, values: Uint32Array): Table {
  const index = new Uint16Array(CODE_POINTS >> PAGE);
  const size = 1 << PAGE;
  const pages: Uint32Array[] = [];
  /** Pages of one value, by it. */
  const uniform = new Map<number, number>();
  let run = 0;
  for (let p = 0; p < index.length; p++) {
    const from = p * size;
    while (ends[run]! <= from) run++;
    const value = values[run]!;
    const known = ends[run]! >= from + size ? uniform.get(value) : undefined;
    if (known !== undefined) {
      index[p] = known;
      continue;
    }
    if (ends[run]! >= from + size) uniform.set(value, pages.length);
    index[p] = pages.length;
    const page = new Uint32Array(size);
    for (let c = 0; c < size; run++) {
      const to = Math.min(size, ends[run]! - from);
      page.fill(values[run]!, c, to);
      c = to;
      if (ends[run]! >= from + size) break;
    }
    pages.push(page);
  }
  const all = new Uint32Array(pages.length * size);
  for (const [i, page] of pages.entries()) all.set(page, i * size);
  return { ends, values, index, pages: all };
}

let characters: { table: Table; classes: readonly number[] } | undefined;
let scripts: Table | undefined;

function load(): { table: Table; classes: readonly number[] } {
  if (!characters) {
    const { table, rest } = readTable(charactersFile);
    characters = { table, classes: [0, ...rest.slice(1)] };
  }
  return characters;
}

/** A function from a code point to its bits: `Is`, and what the functions below take apart. */
export function signatures(): (code: number) => number {
  const { index, pages } = load().table;
  return (code) => pages[(index[code >> PAGE]! << PAGE) | (code & 255)]!;
}

/** Number in `CATEGORIES`. */
export const categoryOf = (signature: number): number => signature & 31;
/** Value of `Grapheme`. */
export const graphemeOf = (signature: number): number => (signature >> 14) & 15;

/** Combining class by code point in the tables that NFC and its kin have: 0 for starters. */
export function combiningClasses(): (code: number) => number {
  const { classes } = load();
  const signature = signatures();
  return (code) => classes[signature(code) >>> 18]!;
}

/** The code points whose bits satisfy `test`. */
export function rangesWhere(test: (signature: number) => boolean): Ranges {
  const { ends, values } = load().table;
  const out: number[] = [];
  let from = 0;
  for (let i = 0; i < ends.length; i++) {
    if (test(values[i]!)) {
      if (out.at(-1) === from) out[out.length - 1] = ends[i]!;
      else out.push(from, ends[i]!);
    }
    from = ends[i]!;
  }
  return out;
}

/** A function from a code point to the number of its script in the pre-tokenizer UnicodeScripts; 0 goes with every script. */
export function scriptNumbers(): (code: number) => number {
  scripts ??= readTable(scriptsFile).table;
  const { index, pages } = scripts;
  return (code) => pages[(index[code >> PAGE]! << PAGE) | (code & 255)]!;
}
