/** The normalizer Precompiled: rules of SentencePiece, as the Rust library applies them. */
import { TokenizerError } from "../tokenizer.ts";
import { eachGrapheme } from "./graphemes.ts";

/** A double-array trie of keys in UTF-8, and the texts that its values point into, each ended by a NUL. */
export interface CharsmapTables {
  readonly trie: Uint32Array;
  readonly texts: Uint8Array;
}

/** Takes `precompiled_charsmap` apart: u32 bytes of the trie (little endian), trie, texts. */
export function readCharsmap(base64: string): CharsmapTables {
  const bytes = Buffer.from(base64, "base64");
  const size = bytes.length < 4 ? -1 : bytes.readUInt32LE(0);
  if (size < 4 || size % 4 !== 0 || 4 + size > bytes.length)
    throw new TokenizerError("the precompiled_charsmap of tokenizer.json is damaged");
  const trie = new Uint32Array(size / 4);
  for (let i = 0; i < trie.length; i++) trie[i] = bytes.readUInt32LE(4 + i * 4);
  return { trie, texts: new Uint8Array(bytes.subarray(4 + size)) };
}

/** Longest cluster, in bytes, that is looked up as a whole. */
const LONGEST = 5;
const MOST = 1 << 15;
const utf8 = new TextEncoder();

/** Gets the place of a part in the old text, and what it became. */
export type Replaced = (from: number, to: number, replacement: string) => void;

/** A function that visits all parts of a text that have a rule, in order. */
export function charsmap({ trie, texts }: CharsmapTables): (text: string, visit: Replaced) => void {
  const key = new Uint8Array(64);
  const known = new Map<string, string | undefined>();
  /** Text of the shortest key that `part` begins with. */
  function lookUp(part: string): string | undefined {
    const { written } = utf8.encodeInto(part, key);
    let at = offset(trie[0]!);
    for (let i = 0; i < written; i++) {
      const byte = key[i]!;
      if (byte === 0) return undefined;
      at ^= byte;
      const unit = trie[at];
      if (unit === undefined || (unit & 0x800000ff) !== byte) return undefined;
      at ^= offset(unit);
      if ((unit >>> 8) & 1) return textAt((trie[at] ?? 0) & 0x7fffffff);
    }
    return undefined;
  }
  function textAt(from: number): string {
    let to = from;
    while (to < texts.length && texts[to] !== 0) to++;
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(texts.slice(from, to));
  }
  function rule(part: string): string | undefined {
    if (known.has(part)) return known.get(part);
    if (known.size >= MOST) known.clear();
    const found = lookUp(part);
    known.set(part, found);
    return found;
  }
  /** Rule of an ASCII character before another one: each is a cluster by itself. */
  const ascii = Array.from({ length: 128 }, (_, code) => lookUp(String.fromCharCode(code)));

  return (text, visit) => {
    eachGrapheme(text, (from, to) => {
      const first = text.charCodeAt(from);
      if (to === from + 1 && first < 128) {
        const found = ascii[first];
        if (found !== undefined) visit(from, to, found);
        return;
      }
      const whole = to - from <= LONGEST ? text.slice(from, to) : "";
      if (whole !== "" && Buffer.byteLength(whole) <= LONGEST) {
        const found = rule(whole);
        if (found !== undefined) return visit(from, to, found);
      }
      for (let at = from; at < to; ) {
        const width = text.codePointAt(at)! > 0xffff ? 2 : 1;
        const found = rule(text.slice(at, at + width));
        if (found !== undefined) visit(at, at + width, found);
        at += width;
      }
    });
  };
}

/** Distance to the children of a unit. */
const offset = (unit: number): number => (unit >>> 10) << ((unit & 512) >>> 6);
