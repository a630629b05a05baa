import type { ContentHash } from "../content-hash.ts";
import { contentHash, type Files } from "../folder-files.ts";
import { TokenizerError } from "../tokenizer.ts";
import { addedTokensHash, withAddedTokens } from "./beside-tokenizer-json.ts";
import { isSentencePiece } from "./sentencepiece.ts";
import { sentencePieceJson } from "./sentencepiece-json.ts";
import { tekkenJson } from "./tekken.ts";
import { isTiktoken } from "./tiktoken.ts";
import { tiktokenJson } from "./tiktoken-model.ts";
import { vocabMergesJson } from "./vocab-merges.ts";

/** A tokenizer among a model's files, in whatever format. */
export interface TokenizerSource {
  readonly format: "tokenizer.json" | "vocab+merges" | "tiktoken" | "tekken" | "sentencepiece";
  /**
   * Name and content of everything that decides the ids: what a cache key must be made of. The version of a conversion counts as a file,
   * and what other files say about added tokens beside a tokenizer.json.
   */
  contents(): readonly (readonly [string, ContentHash])[];
  /** The bytes of a tokenizer.json that gives the same ids (0.1 to 2 s for other formats). Throws `TokenizerError` naming file and part. */
  json(): Uint8Array;
}

/** Raise it whenever a conversion gives another tokenizer.json: what was built from the old one is then built again. */
const CONVERSION = "conversion 2";
/** The same for added tokens that other files put into a tokenizer.json. */
const ADDED = "added tokens 1";

/** Files that say more about a tokenizer of a format other than tokenizer.json. */
const CONFIGS = ["tokenizer_config.json", "config.json", "special_tokens_map.json", "added_tokens.json"];

/**
 * Finds the tokenizer among a model's files (by name, relative to the model's folder). The first of: tokenizer.json, tekken.json, a
 * SentencePiece model, vocab.json with merges.txt, a tiktoken file. Throws `TokenizerError` if there is none that is supported.
 */
export function tokenizerSource(files: Files): TokenizerSource {
  if (files.has("tokenizer.json"))
    return {
      format: "tokenizer.json",
      contents: () => [
        ["tokenizer.json", contentHash(files, "tokenizer.json")],
        [ADDED, addedTokensHash(files, ADDED)],
      ],
      json: () => withAddedTokens(files, files.get("tokenizer.json")!),
    };
  if (files.has("tekken.json"))
    return converted("tekken", files, ["tekken.json"], () => tekkenJson("tekken.json", files.get("tekken.json")!));
  const pieces = modelFiles(files).find(([, bytes]) => isSentencePiece(bytes));
  if (pieces) {
    const [name, bytes] = pieces;
    return converted("sentencepiece", files, [name, ...CONFIGS], () => sentencePieceJson(files, name, bytes));
  }
  if (files.has("merges.txt") && files.has("vocab.json"))
    return converted("vocab+merges", files, ["vocab.json", "merges.txt", ...CONFIGS], () =>
      vocabMergesJson(files, files.get("merges.txt")!),
    );
  const tiktoken = modelFiles(files).find(([, bytes]) => isTiktoken(bytes));
  if (tiktoken) {
    const [name, bytes] = tiktoken;
    return converted("tiktoken", files, [name, ...CONFIGS], () => tiktokenJson(files, name, bytes));
  }
  throw new TokenizerError(nothing(files));
}

/** What is wrong with files among which there is no tokenizer. */
function nothing(files: Files): string {
  for (const [name, bytes] of modelFiles(files)) {
    if (Buffer.from(bytes.subarray(0, 8)).toString("latin1") === "version ")
      return `${name} only says where the file lies (Git LFS): it was not downloaded`;
    return `${name} is neither a SentencePiece model nor a tiktoken file`;
  }
  if (files.has("merges.txt")) return "there is a merges.txt, but no vocab.json";
  if (files.has("vocab.json")) return "there is a vocab.json, but no merges.txt";
  return "there is no tokenizer.json, nor a tokenizer of another format";
}

function converted(
  format: TokenizerSource["format"],
  files: Files,
  names: readonly string[],
  json: () => Uint8Array,
): TokenizerSource {
  const used = names.filter((name) => files.has(name));
  return {
    format,
    contents: () => [[CONVERSION, ""], ...used.map((name) => [name, contentHash(files, name)] as const)],
    json,
  };
}

/** Files that are a SentencePiece model or a tiktoken file, which their content tells apart; those of usual names first. */
function modelFiles(files: Files): [string, Uint8Array][] {
  const rank = (name: string): number => (USUAL.indexOf(name) + USUAL.length + 1) % (USUAL.length + 1);
  return [...files.keys()]
    .filter((name) => /^[^/]+\.(?:model|tiktoken)$/.test(name))
    .sort((a, b) => rank(a) - rank(b))
    .map((name) => [name, files.get(name)!]);
}
const USUAL = ["tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "tiktoken.model"];
