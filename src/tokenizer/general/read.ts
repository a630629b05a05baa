/** Reading a tokenizer.json: vocabulary and merges go from its bytes straight into typed arrays. */
import {
  another,
  broken,
  type Cursor,
  enter,
  expectByte,
  peek,
  readCount,
  readString,
  skipValue,
} from "../image/json-bytes.ts";
import { type SplitTokenizerJson, splitTokenizerJson } from "../image/tokenizer-json.ts";
import { TokenizerError } from "../tokenizer.ts";
import { type NumberText, numberValue } from "./serde-number.ts";
import type { Texts } from "./trie.ts";

export interface Vocabulary extends Texts {
  readonly ids: Uint32Array;
  /** Log probabilities, of a Unigram model. */
  readonly scores: Float64Array | undefined;
}

export interface GeneralJson extends Omit<SplitTokenizerJson, "vocab"> {
  readonly vocabulary: Vocabulary;
}

const MOST_IDS = 1 << 24;

/** Throws `TokenizerError` when the file is no tokenizer.json with a vocabulary. */
export function readGeneralJson(bytes: Uint8Array): GeneralJson {
  const { vocab, ...split } = splitTokenizerJson(bytes);
  if (!vocab) throw new TokenizerError("the model of tokenizer.json has no vocab");
  return { ...split, vocabulary: vocab[0] === 0x5b ? readPieces(vocab) : readWords(vocab) };
}

/** Collects texts as UTF-16. */
function collector(most: number): { add(utf8: Uint8Array, to: number): void; texts(): Texts } {
  const units = new Uint16Array(most);
  let offsets = new Uint32Array(1 << 16);
  let count = 0;
  let end = 0;
  return {
    add(utf8, to) {
      end = toUnits(utf8, to, units, end);
      if (count + 2 > offsets.length) {
        const grown = new Uint32Array(offsets.length * 2);
        grown.set(offsets);
        offsets = grown;
      }
      offsets[++count] = end;
    },
    texts: () => ({ count, units: units.slice(0, end), offsets: offsets.slice(0, count + 1) }),
  };
}

/** Writes well-formed UTF-8 `bytes[0, to)` as UTF-16 to `out` from `at` on; returns the end. */
export function toUnits(bytes: Uint8Array, to: number, out: Uint16Array, at: number): number {
  let end = at;
  for (let i = 0; i < to; ) {
    const b = bytes[i]!;
    if (b < 0x80) {
      out[end++] = b;
      i++;
    } else if (b < 0xe0) {
      out[end++] = ((b & 31) << 6) | (bytes[i + 1]! & 63);
      i += 2;
    } else if (b < 0xf0) {
      out[end++] = ((b & 15) << 12) | ((bytes[i + 1]! & 63) << 6) | (bytes[i + 2]! & 63);
      i += 3;
    } else {
      const high = ((b & 7) << 18) | ((bytes[i + 1]! & 63) << 12);
      const code = (high | ((bytes[i + 2]! & 63) << 6) | (bytes[i + 3]! & 63)) - 0x10000;
      out[end++] = 0xd800 | (code >> 10);
      out[end++] = 0xdc00 | (code & 0x3ff);
      i += 4;
    }
  }
  return end;
}

/** A `vocab` of names and ids. */
function readWords(json: Uint8Array): Vocabulary {
  const cursor: Cursor = { bytes: json, at: 0 };
  const name = new Uint8Array(json.length);
  const words = collector(json.length);
  const ids: number[] = [];
  if (enter(cursor, 0x7b, 0x7d)) {
    do {
      words.add(name, readString(cursor, name, 0));
      expectByte(cursor, 0x3a);
      const id = readCount(cursor);
      if (id >= MOST_IDS) throw new TokenizerError(`tokenizer.json has the id ${id}`);
      ids.push(id);
    } while (another(cursor, 0x7d));
  }
  return { ...words.texts(), ids: Uint32Array.from(ids), scores: undefined };
}

/** A `vocab` of pieces and scores: the place of a piece is its id. */
function readPieces(json: Uint8Array): Vocabulary {
  const cursor: Cursor = { bytes: json, at: 0 };
  const name = new Uint8Array(json.length);
  const pieces = collector(json.length);
  const scores: number[] = [];
  if (enter(cursor, 0x5b, 0x5d)) {
    do {
      expectByte(cursor, 0x5b);
      pieces.add(name, readString(cursor, name, 0));
      expectByte(cursor, 0x2c);
      scores.push(numberValue(readNumber(cursor)));
      expectByte(cursor, 0x5d);
    } while (another(cursor, 0x5d));
  }
  return { ...pieces.texts(), ids: Uint32Array.from(scores, (_, i) => i), scores: Float64Array.from(scores) };
}

const NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

function readNumber(cursor: Cursor): NumberText {
  peek(cursor);
  const from = cursor.at;
  skipValue(cursor);
  const match = NUMBER.exec(String.fromCharCode(...cursor.bytes.subarray(from, Math.min(cursor.at, from + 400))));
  if (!match) throw broken(cursor);
  return { negative: match[1] === "-", whole: match[2]!, fraction: match[3] ?? "", exponent: Number(match[4] ?? 0) };
}
