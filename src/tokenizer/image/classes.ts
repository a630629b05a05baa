/** Character classes per code point as the Rust `tokenizers` library has them: its regex tables are older than the JS engine's. */
import { readFileSync } from "node:fs";
import type { KnownConfiguration } from "./recognise.ts";
import classesFile from "./unicode-classes.rle" with { type: "file" };

const CODE_POINTS = 0x110000;

// cl100k and o200k, as in the kernel
const UP = 1; // may stand in the "upper" part of an o200k word: Lu Lt Lm Lo M
const LO = 2; // may stand in its "lower" part: Ll Lm Lo M
const NU = 4; // \p{N}
const WS = 8; // \s without CR LF
const NL = 16; // CR LF
const LT = 32; // \p{L}
const OT = 64; // [^\s\p{L}\p{N}]
const HAN = 128; // \p{Han}, for Kimi only; then these are no part of words
// DeepSeek
const D_LM = 1; // \p{L}\p{M}
const D_PFX = 2; // [^\r\n\p{L}\p{P}\p{S}]
const D_PS = 4; // \p{P}\p{S}
const D_WS = 8;
const D_NL = 16;
const D_N = 32;
const D_CJK = 64; // the pre-tokenizer's own ranges of ideographs and kana
const D_AL = 128; // A-Za-z

/**
 * Class byte by code point from the file's runs: (run length as unsigned LEB128, class bits) until U+10FFFF.
 * Bits 0 to 7: \p{L} \p{N} \s \p{M} \p{P} \p{S} [\p{Lu}\p{Lt}] \p{Ll}.
 */
function rawClasses(): Uint8Array {
  const bytes = readFileSync(classesFile);
  const table = new Uint8Array(CODE_POINTS);
  let at = 0;
  for (let i = 0; i < bytes.length; ) {
    let run = 0;
    let shift = 0;
    let b: number;
    do {
      b = bytes[i++]!;
      run |= (b & 127) << shift;
      shift += 7;
    } while (b & 128);
    table.fill(bytes[i++]!, at, at + run);
    at += run;
  }
  return table;
}

/**
 * Numbers to the Digits pre-tokenizer only: it goes by the Unicode tables of Rust's standard library, the patterns by those of
 * their regex engine. Found by asking `tokenizers` 0.23.3 about every code point.
 */
const NEWER_DIGITS: readonly [number, number][] = [
  [0x11de0, 0x11de9],
  [0x16ff4, 0x16ff6],
];

/**
 * \p{Han}: Unicode 16, as the Rust library's regex engine and tiktoken's have it. Found by asking `tokenizers` 0.23.3 and `tiktoken`
 * 0.14.0 about every code point; so were the classes of the file, which both have alike.
 */
const HAN_RANGES = `2E80-2E99 2E9B-2EF3 2F00-2FD5 3005 3007 3021-3029 3038-303B 3400-4DBF 4E00-9FFF F900-FA6D FA70-FAD9
16FE2-16FE3 16FF0-16FF1 20000-2A6DF 2A700-2B739 2B740-2B81D 2B820-2CEA1 2CEB0-2EBE0 2EBF0-2EE5D 2F800-2FA1D 30000-3134A
31350-323AF`;

function markHan(table: Uint8Array): void {
  for (const range of HAN_RANGES.split(/\s+/)) {
    const [from = 0, to = from] = range.split("-").map((hex) => Number.parseInt(hex, 16));
    for (let c = from; c <= to; c++) table[c] = (table[c]! & ~(UP | LO)) | HAN;
  }
}

/** Class byte by code point for the scanners of a byte-level configuration. */
export function classTable({ family, marks, maxDigits, han }: KnownConfiguration): Uint8Array {
  const table = rawClasses();
  if (family === "gpt2" && maxDigits === 1) for (const [from, to] of NEWER_DIGITS) table.fill(2, from, to + 1);
  const convert = family === "deepseek" ? deepseekClass : wordClass;
  for (let c = 0; c < CODE_POINTS; c++) table[c] = convert(marks && table[c]! & 8 ? table[c]! | 1 : table[c]!, c);
  if (han) markHan(table);
  return table;
}

function wordClass(r: number, c: number): number {
  const letter = r & 1;
  const digit = r & 2;
  const space = r & 4;
  let out = 0;
  if (letter) out |= LT | (r & 64 ? UP : r & 128 ? LO : UP | LO);
  if (r & 8) out |= UP | LO;
  if (digit) out |= NU;
  if (space) out |= c === 10 || c === 13 ? NL : WS;
  if (!letter && !digit && !space) out |= OT;
  return out;
}

function deepseekClass(r: number, c: number): number {
  const newline = c === 10 || c === 13;
  const symbol = r & (16 | 32);
  let out = 0;
  if (r & (1 | 8)) out |= D_LM;
  if (!newline && !(r & 1) && !symbol) out |= D_PFX;
  if (symbol) out |= D_PS;
  if (r & 4) out |= newline ? D_NL : D_WS;
  if (r & 2) out |= D_N;
  if ((c >= 0x4e00 && c <= 0x9fa5) || (c >= 0x3040 && c <= 0x30ff)) out |= D_CJK;
  if ((c >= 65 && c <= 90) || (c >= 97 && c <= 122)) out |= D_AL;
  return out;
}

/**
 * 1 by code point if NFC may change a text that has it: marks, conjoining jamo and all that decompose. A page of 256 characters
 * that NFC leaves as it is has none of the latter, as they are in no normalized text.
 */
function nfcActive(): Uint8Array {
  const out = new Uint8Array(CODE_POINTS);
  const mark = /\p{M}/u;
  const codes: number[] = new Array(256).fill(0);
  const isActive = (s: string): boolean => mark.test(s) || s.normalize("NFC") !== s;
  for (let from = 0x300; from < CODE_POINTS; from += 256) {
    if (from >= 0xd800 && from < 0xe000) continue;
    for (let i = 0; i < 256; i++) codes[i] = from + i;
    if (!isActive(String.fromCodePoint(...codes))) continue;
    for (const c of codes) out[c] = isActive(String.fromCodePoint(c)) ? 1 : 0;
  }
  return out.fill(1, 0x1100, 0x1200);
}

export interface ClassPages {
  /** Page by code point >> 8. */
  readonly index: Uint16Array;
  /** Pages of 256 class bytes, equal ones once. Bit 7 above U+00FF: NFC may change the text. */
  readonly pages: Uint8Array;
}

/** The class table in two levels: 45 kB instead of 1.1 MB. */
export function classPages(classes: Uint8Array, nfc: boolean): ClassPages {
  const active = nfc ? nfcActive() : undefined;
  const known = new Map<string, number>();
  const index = new Uint16Array(CODE_POINTS >> 8);
  const pages: Uint8Array[] = [];
  const page = Buffer.alloc(256);
  for (let i = 0; i < index.length; i++) {
    page.set(classes.subarray(i << 8, (i + 1) << 8));
    if (active && i > 0) for (let c = 0; c < 256; c++) if (active[(i << 8) | c]) page[c]! |= 128;
    const key = page.toString("latin1");
    let at = known.get(key);
    if (at === undefined) {
      at = pages.length;
      known.set(key, at);
      pages.push(Uint8Array.from(page));
    }
    index[i] = at;
  }
  return { index, pages: Buffer.concat(pages) };
}
