import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadTokenizer, openTokenizer, type TokenizerHandle } from "../../../src/tokenizer/load.ts";
import type { Tokenizer } from "../../../src/tokenizer/tokenizer.ts";

/** The tokenizer.json of a small tokenizer of every known configuration; see test/golden/tokenizer. */
export function smallJson(name: string): Uint8Array {
  return readFileSync(join(import.meta.dir, "../../golden/tokenizer/small", `${name}.json`));
}

export const smallFiles = (name: string): Map<string, Uint8Array> => new Map([["tokenizer.json", smallJson(name)]]);

export const smallHandle = (name: string): Promise<TokenizerHandle> => loadTokenizer(smallFiles(name));

export async function smallTokenizer(name: string): Promise<Tokenizer> {
  return openTokenizer(await smallHandle(name));
}

/** A small tokenizer.json changed by `edit`. */
export function editedFiles(name: string, edit: (json: Record<string, never>) => void): Map<string, Uint8Array> {
  const json = JSON.parse(Buffer.from(smallJson(name)).toString()) as Record<string, never>;
  edit(json);
  return new Map([["tokenizer.json", Buffer.from(JSON.stringify(json))]]);
}

/** Deterministic numbers in [0, 1). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
