import { TokenizerError } from "../tokenizer.ts";
import { Flag, MAX_TOKENS } from "./header.ts";
import type { TokenizerJson } from "./tokenizer-json.ts";

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
}

const utf8 = new TextEncoder();

/** Lays out token bytes in the order of ids. `bytesOf` turns a vocabulary entry into the bytes that it decodes to. */
export function layOut(json: TokenizerJson, byteIds: Int32Array, bytesOf: (word: string) => Uint8Array): Vocabulary {
  const { vocab } = json.model;
  const words = Object.keys(vocab);
  let tokenCount = 0;
  for (const word of words) tokenCount = Math.max(tokenCount, validId(word, vocab[word]) + 1);
  for (const token of json.added_tokens) tokenCount = Math.max(tokenCount, validId(token.content, token.id) + 1);

  const parts: (Uint8Array | undefined)[] = new Array(tokenCount);
  const flags = new Uint8Array(tokenCount);
  for (const word of words) {
    const id = vocab[word]!;
    if (parts[id]) throw new TokenizerError(`two vocabulary entries of tokenizer.json have the id ${id}`);
    parts[id] = bytesOf(word);
  }
  for (const token of json.added_tokens) {
    if (parts[token.id] && vocab[token.content] !== token.id) {
      throw new TokenizerError(`an added token of tokenizer.json has the id ${token.id} of another token`);
    }
    parts[token.id] = bytesOfAdded(token.content, vocab[token.content] === undefined ? undefined : bytesOf);
    flags[token.id] = Flag.added | (token.special ? Flag.special : 0);
  }
  const offsets = new Uint32Array(tokenCount + 1);
  let total = 0;
  for (let id = 0; id < tokenCount; id++) {
    offsets[id] = total;
    total += parts[id]?.length ?? 0;
  }
  offsets[tokenCount] = total;
  const bytes = new Uint8Array(total);
  for (let id = 0; id < tokenCount; id++) {
    const part = parts[id];
    if (!part) continue;
    bytes.set(part, offsets[id]!);
    if (isWhole(part)) flags[id]! |= Flag.whole;
  }
  return { tokenCount, offsets, bytes, flags, byteIds, merges: readMerges(json) };
}

/** An added token decodes to its own text; where it is a vocabulary entry too, both readings must be the same bytes. */
function bytesOfAdded(content: string, bytesOf: ((word: string) => Uint8Array) | undefined): Uint8Array {
  const own = utf8.encode(content);
  if (bytesOf && Buffer.compare(own, bytesOf(content)) !== 0 && !content.includes("▁")) {
    throw new TokenizerError(`the added token ${JSON.stringify(content)} means something else in the vocabulary`);
  }
  return bytesOf ? bytesOf(content) : own;
}

function validId(word: string, id: unknown): number {
  if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id >= MAX_TOKENS) {
    throw new TokenizerError(`tokenizer.json gives ${JSON.stringify(word)} the id ${String(id)}`);
  }
  return id;
}

function readMerges(json: TokenizerJson): Uint32Array {
  const { vocab, merges } = json.model;
  const out = new Uint32Array(merges.length * 3);
  let at = 0;
  for (const merge of merges) {
    const space = typeof merge === "string" ? merge.indexOf(" ") : 0;
    const left = typeof merge === "string" ? merge.slice(0, space) : merge[0];
    const right = typeof merge === "string" ? merge.slice(space + 1) : merge[1];
    const x = vocab[left];
    const y = vocab[right];
    const merged = vocab[left + right];
    if (x === undefined || y === undefined || merged === undefined) {
      throw new TokenizerError(
        `the merge ${JSON.stringify(merge)} of tokenizer.json uses a token that is not in the vocabulary`,
      );
    }
    out[at++] = x;
    out[at++] = y;
    out[at++] = merged;
  }
  return out;
}

const strict = new TextDecoder("utf-8", { fatal: true });
function isWhole(bytes: Uint8Array): boolean {
  if (bytes.every((b) => b < 128)) return true;
  try {
    strict.decode(bytes);
    return true;
  } catch {
    return false;
  }
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
