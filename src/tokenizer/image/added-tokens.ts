import { rustNfc } from "../nfc.ts";
import { CUT_ID, LSTRIP_ID, NORMALIZED_ID, RAW_ID, RSTRIP_ID, SPECIAL_ID } from "./header.ts";
import { powerOfTwo } from "./layout.ts";
import type { AddedTokenJson, TokenizerJson } from "./tokenizer-json.ts";

export interface AddedTrie {
  /** Hash table of (node * 256 + byte, next node); -1 marks a free slot. */
  readonly table: Int32Array;
  readonly mask: number;
  /** Token id by node (with the bits of its flags), -1 for inner nodes. */
  readonly ids: Int32Array;
  /** 1 for bytes that begin an added token. */
  readonly first: Uint8Array;
  /** The only such byte, or 0xffffffff. */
  readonly onlyFirst: number;
}

const utf8 = new TextEncoder();

/**
 * The added tokens as the Rust library numbers them when it reads a file, in the file's order: a token that the vocabulary has keeps
 * its id there, others are numbered on behind it, whatever the file says. Empty ones are left out, of equal ones the last counts.
 */
export function numberedTokens({ words, added_tokens }: TokenizerJson): readonly AddedTokenJson[] {
  if (!words) return added_tokens;
  const numbered = new Map<string, AddedTokenJson>();
  let next = words.count;
  for (const token of added_tokens) {
    if (token.content === "") continue;
    const before = numbered.get(token.content);
    const inVocabulary = words.find(utf8.encode(token.content), 0, Buffer.byteLength(token.content));
    const id = before?.id ?? (inVocabulary >= 0 ? inVocabulary : next);
    next = Math.max(next, id + 1);
    numbered.set(token.content, { ...token, id, special: token.special || before?.special || false });
  }
  return [...numbered.values()];
}

/**
 * Trie over the UTF-8 bytes of the added tokens, for leftmost-longest matching; `cuts` are those that a text may be cut behind. With
 * `nfc`, tokens that are looked for in normalized text are normalized themselves.
 */
export function addedTrie(tokens: readonly AddedTokenJson[], cuts: readonly AddedTokenJson[], nfc = false): AddedTrie {
  const cutIds = new Set(cuts.map((t) => t.id));
  const keys = tokens.map((t) => ({
    id: flagged(t) | (cutIds.has(t.id) ? CUT_ID : 0),
    bytes: utf8.encode(nfc && t.normalized ? rustNfc(t.content) : t.content),
  }));
  const slots = powerOfTwo(keys.reduce((n, k) => n + k.bytes.length, 0) * 2 + 16);
  const table = new Int32Array(slots * 2).fill(-1);
  const first = new Uint8Array(256);
  const ids = [-1];
  for (const { id, bytes } of keys) {
    first[bytes[0]!] = 1;
    let node = 0;
    for (const b of bytes) {
      const key = node * 256 + b;
      let h = (Math.imul(key, 0x9e3779b1) >>> 8) & (slots - 1);
      while (table[h * 2] !== key && table[h * 2] !== -1) h = (h + 1) & (slots - 1);
      if (table[h * 2] === -1) {
        table[h * 2] = key;
        table[h * 2 + 1] = ids.length;
        ids.push(-1);
      }
      node = table[h * 2 + 1]!;
    }
    ids[node] = id;
  }
  const begins = [...first.keys()].filter((b) => first[b]);
  return {
    table,
    mask: slots - 1,
    ids: Int32Array.from(ids),
    first,
    onlyFirst: begins.length === 1 ? begins[0]! : 0xffffffff,
  };
}

const flagged = ({ id, special, normalized, lstrip, rstrip }: AddedTokenJson): number =>
  id |
  (normalized ? NORMALIZED_ID : RAW_ID) |
  (special ? SPECIAL_ID : 0) |
  (lstrip ? LSTRIP_ID : 0) |
  (rstrip ? RSTRIP_ID : 0);
