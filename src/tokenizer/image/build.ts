import { TokenizerError } from "../tokenizer.ts";
import { numberedTokens } from "./added-tokens.ts";
import { byteLevelImage } from "./byte-level.ts";
import { gemmaImage } from "./gemma.ts";
import type { ImageUnderWork } from "./layout.ts";
import type { KnownConfiguration } from "./recognise.ts";
import type { TokenizerJson } from "./tokenizer-json.ts";

/** Builds the table image of a recognised tokenizer, in memory of its own (0.3 to 1.5 s). */
export function buildImage(file: TokenizerJson, known: KnownConfiguration): ImageUnderWork {
  const json = { ...file, added_tokens: numberedTokens(file) };
  if ((json.merges?.length ?? 0) >= 3 << 24) throw new TokenizerError("tokenizer.json has too many merges");
  try {
    return known.family === "gemma" ? gemmaImage(json, known) : byteLevelImage(json, known);
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError)
      throw new TokenizerError("the tables of tokenizer.json can't be built");
    throw error;
  }
}
