import type { Tokenizer } from "../../tokenizer/tokenizer.ts";

/** A prompt as the beginning of its answer. */
export interface Echo {
  readonly text: string;
  /** Tokens before it that are no part of the text (BOS). */
  readonly from: number;
}

/**
 * The text of a prompt: as it came, unless it came as ids or has been cut. `added`: the model's special tokens were put around it;
 * `cutTo`: tokens that it was cut to if it had more.
 */
export function echoOf(
  text: string | undefined,
  ids: Uint32Array,
  tokenizer: Tokenizer,
  { added, cutTo }: { readonly added: boolean; readonly cutTo: number | undefined },
): Echo {
  const { single } = tokenizer.postProcessor;
  const before = text === undefined || !added ? [] : single.slice(0, single.indexOf("A"));
  const from = before.every((id, i) => ids[i] === id) ? before.length : 0;
  if (text !== undefined && ids.length !== cutTo) return { text, from };
  const decoder = tokenizer.decoder({ skipSpecialTokens: false });
  let decoded = "";
  for (const id of ids.subarray(from)) decoded += decoder.push(id);
  return { text: decoded + decoder.end(), from };
}
