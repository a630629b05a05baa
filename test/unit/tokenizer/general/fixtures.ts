import { buildGeneral } from "../../../../src/tokenizer/general/build.ts";
import { openGeneral } from "../../../../src/tokenizer/general/open.ts";
import type { Tokenizer } from "../../../../src/tokenizer/tokenizer.ts";
import { variant, variantJson } from "../../../golden/tokenizer-general/variants.ts";

export const opened = (json: Uint8Array): Tokenizer => openGeneral(buildGeneral(json));

/** The tokenizer of a golden variant. */
export const named = (name: string): Tokenizer => opened(variant(name));

/** A small tokenizer that shows every character, with parts of a tokenizer.json in place of its own. */
export const characters = (patch: Record<string, unknown>): Tokenizer => opened(variantJson("characters", patch));

/** All pieces of a stream, and its end. */
export function pieces(tokenizer: Tokenizer, ids: Iterable<number>, skipSpecialTokens = false): string[] {
  const decoder = tokenizer.decoder({ skipSpecialTokens });
  return [...Array.from(ids, (id) => decoder.push(id)), decoder.end()];
}
