import type { Tokenizer } from "./tokenizer.ts";

/** Tokens per text: about 10 kB. */
const TOKENS = 3000;

/**
 * Encodes and decodes texts made of the vocabulary for `ms` milliseconds, so that the engine compiles the kernel and the decoder
 * before the first request. Common tokens (low ids) come more often. Blocks the thread.
 */
export function warmUp(tokenizer: Tokenizer, ms: number): void {
  const end = performance.now() + ms;
  const decoder = tokenizer.decoder({ skipSpecialTokens: true });
  let state = 1;
  const below = (n: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return Math.floor((state / 2 ** 32) ** 2 * n);
  };
  while (performance.now() < end) {
    let text = "";
    for (let i = 0; i < TOKENS; i++) text += decoder.push(below(tokenizer.vocabSize));
    tokenizer.encode(text + decoder.end());
  }
}
