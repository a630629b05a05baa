import type { TokenDecoder, Tokenizer } from "../tokenizer/tokenizer.ts";

/** Ids that decide how a text goes on: the last one that is shown, and what of a character is before it. */
const CONTEXT = 8;

/** A decoder that stands behind `before`: what a tokenizer does at the beginning of a text (SentencePiece drops a space) it does not do again. */
export function continuedDecoder(
  tokenizer: Tokenizer,
  skipSpecialTokens: boolean,
  before: Uint32Array | undefined,
): TokenDecoder {
  const decoder = tokenizer.decoder({ skipSpecialTokens });
  for (const id of before?.subarray(-CONTEXT) ?? []) decoder.push(id);
  return decoder;
}
