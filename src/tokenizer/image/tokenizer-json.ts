import { TokenizerError } from "../tokenizer.ts";
import { another, type Cursor, enter, expectByte, peek, readString, skipValue } from "./json-bytes.ts";
import { readMerges, readWords, type Words } from "./words.ts";

/** The parts of a tokenizer.json that decide ids; what is `unknown` is compared with known configurations as a whole. */
export interface TokenizerJson {
  readonly model: {
    readonly type?: string;
    readonly ignore_merges?: boolean;
    readonly byte_fallback?: boolean;
    readonly unk_token?: string | null;
    readonly fuse_unk?: boolean;
    readonly dropout?: number | null;
    readonly continuing_subword_prefix?: string | null;
    readonly end_of_word_suffix?: string | null;
    /** Ours: "token" where merges that make the same token, which follow each other in the list, have one rank. */
    readonly merge_rank?: string;
  };
  /** The model's `vocab`, if it is an object of names and ids. */
  readonly words: Words | undefined;
  /** The model's `merges`: by rank the ids of left, right and result. */
  readonly merges: Uint32Array | undefined;
  readonly added_tokens: readonly AddedTokenJson[];
  readonly normalizer?: unknown;
  readonly pre_tokenizer?: unknown;
  readonly decoder?: unknown;
  readonly post_processor?: unknown;
}

export interface AddedTokenJson {
  readonly id: number;
  readonly content: string;
  readonly special?: boolean;
  readonly normalized?: boolean;
  readonly single_word?: boolean;
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
}

/**
 * Reads a tokenizer.json. Its vocabulary and merges (hundreds of thousands of strings) go from the file's bytes straight into
 * typed arrays: as JavaScript strings they would take 200 MB. Throws `TokenizerError` when it is no such file.
 */
export function parseTokenizerJson(bytes: Uint8Array): TokenizerJson {
  const { json, model, vocab, merges } = splitTokenizerJson(bytes);
  const added = json["added_tokens"] ?? [];
  if (!isAddedTokens(added)) throw new TokenizerError("added_tokens of tokenizer.json is not a list of tokens");
  const words = vocab?.[0] === 0x7b ? readWords(vocab) : undefined;
  const pairs = words && merges && readMerges(merges, words);
  return { ...json, model, added_tokens: added, words, merges: pairs };
}

/** A tokenizer.json with its largest parts apart. */
export interface SplitTokenizerJson {
  /** The whole file, with null for `vocab` and `merges` of its model. */
  readonly json: Record<string, unknown>;
  readonly model: Record<string, unknown>;
  /** JSON text of the model's vocabulary and merges, if there are any. */
  readonly vocab: Uint8Array | undefined;
  readonly merges: Uint8Array | undefined;
}

/** Throws `TokenizerError` when it is no JSON, or has no model. */
export function splitTokenizerJson(bytes: Uint8Array): SplitTokenizerJson {
  const { vocab, merges } = findLargeParts(bytes);
  const json = parse(without(bytes, [vocab, merges]));
  const model = isObject(json) ? json["model"] : undefined;
  if (!isObject(json) || !isObject(model)) throw new TokenizerError("tokenizer.json has no model");
  const part = (span: Span | undefined) => span && bytes.subarray(span.from, span.to);
  return { json, model, vocab: part(vocab), merges: part(merges) };
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/** Where the values of `model.vocab` and `model.merges` lie. */
function findLargeParts(bytes: Uint8Array): { vocab?: Span; merges?: Span } {
  const found: { vocab?: Span; merges?: Span } = {};
  const cursor: Cursor = { bytes, at: 0 };
  eachMember(cursor, (key) => {
    if (key !== "model" || peek(cursor) !== 0x7b) return skipValue(cursor);
    eachMember(cursor, (part) => {
      peek(cursor);
      const from = cursor.at;
      skipValue(cursor);
      if (part === "vocab" || part === "merges") found[part] = { from, to: cursor.at };
    });
  });
  return found;
}

/** Calls `visit` with the cursor at each value of an object; it must move past the value. */
export function eachMember(cursor: Cursor, visit: (key: string) => void): void {
  const name = new Uint8Array(256);
  if (!enter(cursor, 0x7b, 0x7d)) return;
  do {
    const end = readString(cursor, name, 0);
    expectByte(cursor, 0x3a);
    visit(end > name.length ? "" : new TextDecoder().decode(name.subarray(0, end)));
  } while (another(cursor, 0x7d));
}

/** The text without some values: null stands in their place. */
function without(bytes: Uint8Array, spans: readonly (Span | undefined)[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const span of spans.filter((s) => s !== undefined).sort((a, b) => a.from - b.from)) {
    parts.push(bytes.subarray(at, span.from), Buffer.from("null"));
    at = span.to;
  }
  return Buffer.concat([...parts, bytes.subarray(at)]);
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new TokenizerError(`tokenizer.json is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export const isObject = (x: unknown): x is Record<string, unknown> =>
  typeof x === "object" && x !== null && !Array.isArray(x);

export const isAddedTokens = (x: unknown): x is AddedTokenJson[] =>
  Array.isArray(x) &&
  x.every((t) => isObject(t) && Number.isInteger(t["id"]) && Number(t["id"]) >= 0 && typeof t["content"] === "string");
