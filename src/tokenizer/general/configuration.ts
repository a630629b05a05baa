/** What of a tokenizer.json goes into the block as JSON, and how it is checked. */
import { type AddedTokenJson, isObject } from "../image/tokenizer-json.ts";
import { type PostProcessor, TokenizerError } from "../tokenizer.ts";
import type { AddedTokens } from "./added-tokens.ts";
import { type CharsmapTables, readCharsmap } from "./charsmap.ts";
import { count, flag, type Json, type Part, partOf, text, unsupported } from "./json-part.ts";

/** The JSON value of a block. */
export interface GeneralValue {
  readonly vocabSize: number;
  readonly model: ModelOptions;
  /** As in the file, with a number in place of each charsmap. */
  readonly normalizer: unknown;
  readonly charsmaps: number;
  readonly preTokenizer: unknown;
  readonly decoder: unknown;
  readonly postProcessor: PostProcessor;
  readonly added: AddedTokens;
}

export type ModelOptions =
  | { readonly type: "Unigram"; readonly unkId?: number; readonly byteFallback: boolean }
  | { readonly type: "WordLevel"; readonly unknown: string }
  | { readonly type: "WordPiece"; readonly unknown: string; readonly prefix: string; readonly longest: number }
  | {
      readonly type: "BPE";
      readonly unknown?: string;
      readonly fuseUnknown: boolean;
      readonly byteFallback: boolean;
      readonly prefix: string;
      readonly suffix: string;
      readonly ignoreMerges: boolean;
    };

/** The options of a `model`. `scored`: its vocabulary is a list of pieces with scores. */
export function modelOptions(model: Json, scored: boolean): ModelOptions {
  const type = String(model["type"] ?? guess(model, scored));
  const part: Part = { kind: "model", json: { ...model, type } };
  if (scored !== (type === "Unigram")) throw unsupported(part, "this vocabulary");
  switch (type) {
    case "Unigram": {
      const byteFallback = flag(part, "byte_fallback", false);
      const none = part.json["unk_id"] === null || part.json["unk_id"] === undefined;
      return none ? { type, byteFallback } : { type, byteFallback, unkId: count(part, "unk_id") };
    }
    case "WordLevel":
      return { type, unknown: text(part, "unk_token") };
    case "WordPiece":
      return {
        type,
        unknown: text(part, "unk_token"),
        prefix: text(part, "continuing_subword_prefix"),
        longest: count(part, "max_input_chars_per_word"),
      };
    case "BPE": {
      if (model["dropout"]) throw unsupported(part, "dropout");
      const optional = (name: string): string | undefined =>
        model[name] === null || model[name] === undefined ? undefined : text(part, name);
      const unknown = optional("unk_token");
      return {
        type,
        ...(unknown === undefined ? {} : { unknown }),
        fuseUnknown: flag(part, "fuse_unk", false),
        byteFallback: flag(part, "byte_fallback", false),
        prefix: optional("continuing_subword_prefix") ?? "",
        suffix: optional("end_of_word_suffix") ?? "",
        ignoreMerges: flag(part, "ignore_merges", false),
      };
    }
    default:
      throw unsupported(part);
  }
}

/** Old files name no type. */
function guess(model: Json, scored: boolean): string {
  if (scored) return "Unigram";
  if ("merges" in model) return "BPE";
  return "continuing_subword_prefix" in model ? "WordPiece" : "WordLevel";
}

export function addedTokenList(json: Json): AddedTokenJson[] {
  const list = json["added_tokens"] ?? [];
  const isToken = (t: unknown): t is AddedTokenJson => isObject(t) && typeof t["content"] === "string";
  if (!Array.isArray(list) || !list.every(isToken))
    throw new TokenizerError("added_tokens of tokenizer.json is not a list of tokens");
  return list;
}

/** A normalizer with numbers in place of charsmaps, and the charsmaps. */
export function charsmapsOf(json: unknown): { value: unknown; maps: CharsmapTables[] } {
  const maps: CharsmapTables[] = [];
  const walk = (value: unknown): unknown => {
    if (!isObject(value)) return value ?? null;
    if (value["type"] === "Sequence" && Array.isArray(value["normalizers"]))
      return { ...value, normalizers: value["normalizers"].map(walk) };
    if (value["type"] !== "Precompiled") return value;
    maps.push(readCharsmap(text(partOf("normalizer", value), "precompiled_charsmap")));
    return { type: "Precompiled", precompiled_charsmap: maps.length - 1 };
  };
  return { value: walk(json), maps };
}
