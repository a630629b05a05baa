import type { Tokenizer } from "./tokenizer.ts";

/**
 * A text made of `count` tokens of the vocabulary, the same for the same seed: it takes a tokenizer through all that ordinary texts
 * do. Low ids, which are the common tokens, come more often; special tokens do not come.
 */
export function sampleText(tokenizer: Tokenizer, count: number, seed: number): string {
  const decoder = tokenizer.decoder({ skipSpecialTokens: true });
  let state = seed;
  const below = (n: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return Math.floor((state / 2 ** 32) ** 2 * n);
  };
  let text = "";
  for (let i = 0; i < count; i++) text += decoder.push(below(tokenizer.vocabSize));
  return text + decoder.end();
}
