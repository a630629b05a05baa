import { isUtf8 } from "node:buffer";
import { TokenizerError } from "../tokenizer.ts";
import { Flag, MAX_TOKENS } from "./header.ts";
import type { AddedTokenJson, TokenizerJson } from "./tokenizer-json.ts";
import type { Words } from "./words.ts";

/** A vocabulary in typed arrays: the bytes of token `i` are `bytes[offsets[i], offsets[i + 1])`. */
export interface Vocabulary {
  readonly tokenCount: number;
  readonly offsets: Uint32Array;
  readonly bytes: Uint8Array;
  /** `Flag` bits by token. */
  readonly flags: Uint8Array;
  /** Token of each single byte. */
  readonly byteIds: Int32Array;
  /** By rank: left id, right id, id of the result. */
  readonly merges: Uint32Array;
  /** Rank of each of the merges; equal ones are made from left to right. */
  readonly ranks: Uint32Array;
}

/** Writes what the vocabulary entry `bytes[from, to)` decodes to at `out[at]`; returns the end. It is never longer than the entry. */
export type WriteWord = (bytes: Uint8Array, from: number, to: number, out: Uint8Array, at: number) => number;

/** Lays out token bytes in the order of ids. `cuts` are the added tokens that a text may be cut behind. */
export function layOut(
  json: TokenizerJson,
  words: Words,
  byteIds: Int32Array,
  cuts: readonly AddedTokenJson[],
  write: WriteWord,
): Vocabulary {
  let tokenCount = 0;
  for (let i = 0; i < words.count; i++) tokenCount = Math.max(tokenCount, words.ids[i]! + 1);
  let room = words.bytes.length;
  for (const { id, content } of json.added_tokens) {
    if (id >= MAX_TOKENS) throw new TokenizerError(`tokenizer.json gives ${JSON.stringify(content)} the id ${id}`);
    tokenCount = Math.max(tokenCount, id + 1);
    room += content.length * 3;
  }
  // first in the order of the file, then in that of the ids
  const loose = new Uint8Array(room);
  const from = new Int32Array(tokenCount).fill(-1);
  const to = new Int32Array(tokenCount);
  let at = 0;
  for (let i = 0; i < words.count; i++) {
    const id = words.ids[i]!;
    if (from[id]! >= 0) throw new TokenizerError(`two vocabulary entries of tokenizer.json have the id ${id}`);
    from[id] = at;
    at = write(words.bytes, words.offsets[i]!, words.offsets[i + 1]!, loose, at);
    to[id] = at;
  }
  const flags = new Uint8Array(tokenCount);
  for (const { id, content, special } of json.added_tokens) {
    const text = Buffer.from(content);
    if (from[id]! < 0) {
      from[id] = at;
      loose.set(text, at);
      at += text.length;
      to[id] = at;
    } else if (words.find(text, 0, text.length) !== id) {
      throw new TokenizerError(`an added token of tokenizer.json has the id ${id} of another token`);
    }
    flags[id] = Flag.added | (special ? Flag.special : 0);
  }
  for (const { id } of cuts) flags[id]! |= Flag.cut;
  const offsets = new Uint32Array(tokenCount + 1);
  const bytes = new Uint8Array(at);
  let total = 0;
  for (let id = 0; id < tokenCount; id++) {
    offsets[id] = total;
    if (from[id]! < 0) continue;
    const first = total;
    let all = 0;
    for (let i = from[id]!; i < to[id]!; i++) {
      all |= loose[i]!;
      bytes[total++] = loose[i]!;
    }
    if (all < 0x80 || isUtf8(bytes.subarray(first, total))) flags[id]! |= Flag.whole;
  }
  offsets[tokenCount] = total;
  return {
    tokenCount,
    offsets,
    bytes: bytes.subarray(0, total),
    flags,
    byteIds,
    merges: json.merges ?? new Uint32Array(0),
    ranks: mergeRanks(json),
  };
}

/** By merge: its place in the list; or, where merges that make the same token share a rank, the place of the first of these. */
function mergeRanks({ merges = new Uint32Array(0), model }: TokenizerJson): Uint32Array {
  const byToken = model.merge_rank === "token";
  if (!byToken && model.merge_rank !== undefined) throw new TokenizerError("tokenizer.json has an unknown merge_rank");
  const ranks = new Uint32Array(merges.length / 3);
  for (let m = 1; m < ranks.length; m++) {
    ranks[m] = byToken && merges[m * 3 + 2] === merges[m * 3 - 1] ? ranks[m - 1]! : m;
  }
  return ranks;
}

/** Lengths that the lookup tables are sized by: tokens of 9 to 16 bytes, and longer ones. */
export function countByLength(v: Vocabulary): { medium: number; long: number } {
  let medium = 0;
  let long = 0;
  for (let id = 0; id < v.tokenCount; id++) {
    const length = v.offsets[id + 1]! - v.offsets[id]!;
    if (length > 16) long++;
    else if (length > 8) medium++;
  }
  return { medium, long };
}
