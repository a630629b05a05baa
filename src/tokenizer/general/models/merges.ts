import { another, type Cursor, enter, expectByte, peek, readString } from "../../image/json-bytes.ts";
import { powerOfTwo } from "../../image/layout.ts";
import { TokenizerError } from "../../tokenizer.ts";
import { toUnits } from "../read.ts";
import type { Trie } from "../trie.ts";

/** Open addressing: 4 numbers per slot: left, right, rank, result; left is -1 in free slots. */
export type MergeTable = Int32Array;

export interface Merges {
  /** Slot of the merge of two ids, or -1. */
  slot(left: number, right: number): number;
  rank(slot: number): number;
  result(slot: number): number;
}

const hash = (left: number, right: number): number => {
  const h = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
  return (h ^ (h >>> 15)) >>> 0;
};

export function openMerges(table: MergeTable): Merges {
  const mask = table.length / 4 - 1;
  return {
    slot(left, right) {
      for (let i = hash(left, right) & mask; table[i * 4] !== -1; i = (i + 1) & mask)
        if (table[i * 4] === left && table[i * 4 + 1] === right) return i * 4;
      return -1;
    },
    rank: (slot) => table[slot + 2]!,
    result: (slot) => table[slot + 3]!,
  };
}

/**
 * Reads a `merges` list, in both forms (`"a b"` and `["a", "b"]`). `prefixLength`: bytes of the prefix of pieces that go on a word;
 * the result of a merge has that of its right part cut off. Of equal pairs the last counts, as in the library.
 */
export function buildMerges(json: Uint8Array, trie: Trie, prefixLength: number): MergeTable {
  const rows: number[] = [];
  const cursor: Cursor = { bytes: json, at: 0 };
  const scratch = new Uint8Array(json.length);
  const units = new Uint16Array(json.length);
  const find = (from: number, to: number): number => {
    const end = toUnits(scratch.subarray(from, to), to - from, units, 0);
    return trie.findUnits(units, 0, end);
  };
  if (enter(cursor, 0x5b, 0x5d)) {
    do {
      const middle = readMerge(cursor, scratch);
      if (middle === undefined) continue;
      const left = find(0, middle.at);
      const right = find(middle.at, middle.end);
      const text = new TextDecoder().decode(scratch.subarray(0, middle.end));
      scratch.copyWithin(middle.at, middle.at + prefixLength, middle.end);
      const merged = find(0, middle.end - prefixLength);
      if (left < 0 || right < 0 || merged < 0)
        throw new TokenizerError(
          `tokenizer.json has the merge ${JSON.stringify(text)} of tokens that are not in the vocabulary`,
        );
      rows.push(left, right, merged);
    } while (another(cursor, 0x5d));
  }
  return table(rows);
}

/** Both parts, one after the other, to the start of `scratch`; undefined for a line that is no merge. */
function readMerge(cursor: Cursor, scratch: Uint8Array): { at: number; end: number } | undefined {
  if (peek(cursor) === 0x5b) {
    cursor.at++;
    const at = readString(cursor, scratch, 0);
    expectByte(cursor, 0x2c);
    const end = readString(cursor, scratch, at);
    expectByte(cursor, 0x5d);
    return { at, end };
  }
  const end = readString(cursor, scratch, 0);
  const line = Buffer.from(scratch.buffer, 0, end);
  if (line.subarray(0, 8).toString() === "#version") return undefined;
  const at = line.indexOf(0x20);
  if (at < 0 || line.indexOf(0x20, at + 1) >= 0)
    throw new TokenizerError(`the merge ${JSON.stringify(line.toString())} of tokenizer.json has not two parts`);
  scratch.copyWithin(at, at + 1, end);
  return { at, end: end - 1 };
}

function table(rows: readonly number[]): MergeTable {
  const slots = powerOfTwo((rows.length / 3) * 2 + 2);
  const out = new Int32Array(slots * 4).fill(-1);
  for (let k = 0; k < rows.length; k += 3) {
    const [left, right] = [rows[k]!, rows[k + 1]!];
    let i = hash(left, right) & (slots - 1);
    while (out[i * 4] !== -1 && (out[i * 4] !== left || out[i * 4 + 1] !== right)) i = (i + 1) & (slots - 1);
    out.set([left, right, k / 3, rows[k + 2]!], i * 4);
  }
  return out;
}
