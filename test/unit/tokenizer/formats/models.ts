import { readFileSync } from "node:fs";
import { join } from "node:path";
import { tokenizerSource } from "../../../../src/tokenizer/formats/source.ts";
import type { TokenizerJson } from "../../../../src/tokenizer/image/tokenizer-json.ts";
import { TokenizerError } from "../../../../src/tokenizer/tokenizer.ts";

/** A small model file; see test/golden/tokenizer-formats. */
export const model = (name: string): Uint8Array =>
  readFileSync(join(import.meta.dir, "../../../golden/tokenizer-formats/models", name));

/** Files by name: bytes, texts, or what becomes JSON. */
export const files = (contents: Readonly<Record<string, unknown>>): Map<string, Uint8Array> =>
  new Map(
    Object.entries(contents).map(([name, content]) => {
      if (content instanceof Uint8Array) return [name, content];
      return [name, Buffer.from(typeof content === "string" ? content : JSON.stringify(content))];
    }),
  );

/** The tokenizer.json that files are converted to. */
export const converted = (contents: Readonly<Record<string, unknown>>): TokenizerJson & Record<string, unknown> =>
  JSON.parse(Buffer.from(tokenizerSource(files(contents)).json()).toString()) as TokenizerJson &
    Record<string, unknown>;

/** The message of the `TokenizerError` that converting throws; another error is thrown on, none is "". */
export function refusal(contents: Readonly<Record<string, unknown>>): string {
  try {
    tokenizerSource(files(contents)).json();
    return "";
  } catch (error) {
    if (error instanceof TokenizerError) return error.message;
    throw error;
  }
}
