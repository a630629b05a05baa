import type { Tokenizer } from "../../tokenizer/tokenizer.ts";

/** Sentences that an answer goes on with; each starts with a blank so that they join in any order. */
const SENTENCES = [
  " I do not compute anything, but I keep time like a real engine.",
  " Prompts are cut into chunks and their blocks stay in the cache for the next request.",
  " Every running request gets one token in each step, so more requests make each step a little longer.",
  " Ask me again and the beginning of your prompt will be served from the cache.",
  " If you need exact words, give me a script with rules and answers.",
  " When the memory is full, the newest request waits and is computed again later.",
  " Cancel at any time: the blocks of a cancelled request are free at once.",
  " The numbers at my statistics port tell what I have seen so far.",
] as const;
/** Sentences after the first one that a short answer has. */
const SHORT_ANSWER_SENTENCES = 2;

/** Tokens to say: `idAt` never ends, `natural` is how many an unforced answer has before its EOS. */
export interface Content {
  readonly natural: number;
  idAt(position: number): number;
}

/** Makes the default answers of an engine; the fixed sentences are encoded once. */
export function createAnswerer(
  tokenizer: Tokenizer,
  naturalTokens: number | undefined,
): (promptTokens: number, cachedTokens: number, variant: number) => Content {
  const sentences = SENTENCES.map((sentence) => tokenizer.encode(sentence));
  const rotations = sentences.map((_, first) => {
    const ids: number[] = [];
    let short = 0;
    for (let i = 0; i < sentences.length; i++) {
      ids.push(...sentences[(first + i) % sentences.length]!);
      if (i === SHORT_ANSWER_SENTENCES - 1) short = ids.length;
    }
    return { ids: Uint32Array.from(ids), short };
  });
  return (promptTokens, cachedTokens, variant) => {
    // Samples of one request differ from their first word on, as sampled ones do.
    const who = variant === 0 ? "I am a simulated engine" : `Sample ${variant} of a simulated engine`;
    const intro = tokenizer.encode(`${who}. Your prompt had ${promptTokens} tokens, ${cachedTokens} of them cached.`);
    const { ids, short } = rotations[variant % rotations.length]!;
    return {
      natural: naturalTokens ?? intro.length + short,
      idAt: (position) => (position < intro.length ? intro[position]! : ids[(position - intro.length) % ids.length]!),
    };
  };
}

/** The prompt's own ids without special ones, over and over, without an end of its own. */
export function echoContent(prompt: Uint32Array, specialIds: ReadonlySet<number>): Content {
  const plain = prompt.filter((id) => !specialIds.has(id));
  const ids = plain.length > 0 ? plain : prompt;
  return { natural: Number.POSITIVE_INFINITY, idAt: (position) => ids[position % ids.length]! };
}

/** Fixed ids, then the same again if it must go on. */
export function fixedContent(ids: ArrayLike<number>): Content {
  return { natural: ids.length, idAt: (position) => ids[position % Math.max(ids.length, 1)] ?? 0 };
}
