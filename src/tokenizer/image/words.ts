import { TokenizerError } from "../tokenizer.ts";
import { MAX_TOKENS } from "./header.ts";
import { another, type Cursor, enter, expectByte, peek, readCount, readString } from "./json-bytes.ts";
import { powerOfTwo } from "./layout.ts";

/** The entries of a vocabulary: entry `i` is the UTF-8 text `bytes[offsets[i], offsets[i + 1])` with the id `ids[i]`. */
export interface Words {
  readonly count: number;
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
  readonly ids: Uint32Array;
  /** Id of the entry that `key[from, to)` spells, or -1. */
  find(key: Uint8Array, from: number, to: number): number;
}

const text = (bytes: Uint8Array): string => JSON.stringify(new TextDecoder().decode(bytes));

/** Reads a `vocab` object: names and ids. */
export function readWords(json: Uint8Array): Words {
  const cursor: Cursor = { bytes: json, at: 0 };
  // an entry takes 4 bytes at least, and no string grows when it is unescaped
  const bytes = new Uint8Array(json.length);
  let offsets = new Uint32Array(1 << 16);
  let count = 0;
  let end = 0;
  let ids = new Uint32Array(1 << 16);
  if (enter(cursor, 0x7b, 0x7d)) {
    do {
      if (count + 2 > offsets.length) {
        offsets = grown(offsets);
        ids = grown(ids);
      }
      end = readString(cursor, bytes, end);
      expectByte(cursor, 0x3a);
      const id = readCount(cursor);
      if (id >= MAX_TOKENS)
        throw new TokenizerError(`tokenizer.json gives ${text(bytes.subarray(offsets[count], end))} the id ${id}`);
      ids[count++] = id;
      offsets[count] = end;
    } while (another(cursor, 0x7d));
  }
  return indexed(count, bytes.slice(0, end), offsets, ids);
}

function grown(array: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const out = new Uint32Array(array.length * 2);
  out.set(array);
  return out;
}

function indexed(count: number, bytes: Uint8Array, offsets: Uint32Array, ids: Uint32Array): Words {
  const slots = powerOfTwo(count * 2);
  const table = new Int32Array(slots).fill(-1);
  /** Slot of the entry of this text, or the free one where it belongs. */
  function slotOf(key: Uint8Array, from: number, to: number): number {
    let slot = hash(key, from, to) & (slots - 1);
    for (let entry = table[slot]!; entry >= 0; entry = table[slot]!) {
      const at = offsets[entry]!;
      if (offsets[entry + 1]! - at === to - from) {
        let i = 0;
        while (i < to - from && bytes[at + i] === key[from + i]) i++;
        if (i === to - from) return slot;
      }
      slot = (slot + 1) & (slots - 1);
    }
    return slot;
  }
  for (let i = 0; i < count; i++) {
    const slot = slotOf(bytes, offsets[i]!, offsets[i + 1]!);
    if (table[slot]! >= 0) {
      throw new TokenizerError(
        `tokenizer.json has the token ${text(bytes.subarray(offsets[i], offsets[i + 1]))} twice`,
      );
    }
    table[slot] = i;
  }
  return {
    count,
    bytes,
    offsets,
    ids,
    find(key, from, to) {
      const entry = table[slotOf(key, from, to)]!;
      return entry < 0 ? -1 : ids[entry]!;
    },
  };
}

function hash(key: Uint8Array, from: number, to: number): number {
  let h = to - from;
  for (let i = from; i < to; i++) h = Math.imul(h ^ key[i]!, 0x9e3779b1) ^ (h >>> 15);
  return (h ^ (h >>> 13)) >>> 0;
}

/** Reads a `merges` list, in both forms (`"a b"` and `["a", "b"]`): by rank the ids of left, right and result. */
export function readMerges(json: Uint8Array, words: Words): Uint32Array {
  const cursor: Cursor = { bytes: json, at: 0 };
  const scratch = new Uint8Array(json.length);
  let merges = new Uint32Array(3 << 16);
  let length = 0;
  if (!enter(cursor, 0x5b, 0x5d)) return new Uint32Array(0);
  do {
    if (length + 3 > merges.length) merges = grown(merges);
    const { middle, end } = readMerge(cursor, scratch);
    const left = words.find(scratch, 0, middle);
    const right = words.find(scratch, middle, end);
    const merged = words.find(scratch, 0, end);
    if (left < 0 || right < 0 || merged < 0) {
      const parts = `${text(scratch.subarray(0, middle))} and ${text(scratch.subarray(middle, end))}`;
      throw new TokenizerError(
        `tokenizer.json merges ${parts}, which makes use of a token that is not in the vocabulary`,
      );
    }
    merges[length++] = left;
    merges[length++] = right;
    merges[length++] = merged;
  } while (another(cursor, 0x5d));
  return merges.slice(0, length);
}

/** Both parts, one after the other, to the start of `scratch`. */
function readMerge(cursor: Cursor, scratch: Uint8Array): { middle: number; end: number } {
  if (peek(cursor) === 0x5b) {
    cursor.at++;
    const middle = readString(cursor, scratch, 0);
    expectByte(cursor, 0x2c);
    const end = readString(cursor, scratch, middle);
    expectByte(cursor, 0x5d);
    return { middle, end };
  }
  const end = readString(cursor, scratch, 0);
  const middle = scratch.subarray(0, end).indexOf(0x20);
  if (middle < 0)
    throw new TokenizerError(`the merge ${text(scratch.subarray(0, end))} of tokenizer.json has no second part`);
  scratch.copyWithin(middle, middle + 1, end);
  return { middle, end: end - 1 };
}
