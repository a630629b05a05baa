import type { LogprobEntry, TopLogprob } from "../../generation/events.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";

/** JSON has no minus infinity; vLLM and OpenAI show this instead. */
export const LOWEST = -9999;

export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  /** Exact bytes of the token, also where it is a part of a character. */
  readonly bytes: readonly number[];
}

export interface ChatLogprob extends TokenLogprob {
  readonly top_logprobs: readonly TokenLogprob[];
}

/** Draws logprobs in the form of Chat Completions; `asIds` is vLLM's `return_tokens_as_token_ids`. */
export function chatLogprobs(entries: readonly LogprobEntry[], tokenizer: Tokenizer, asIds: boolean): ChatLogprob[] {
  const draw = ({ id, logprob }: TopLogprob): TokenLogprob => {
    const bytes = tokenizer.tokenBytes(id);
    return {
      token: asIds ? `token_id:${id}` : Buffer.from(bytes).toString("utf8"),
      logprob: Math.max(logprob, LOWEST),
      bytes: Array.from(bytes),
    };
  };
  return entries.map((entry) => ({ ...draw(entry), top_logprobs: entry.top.map(draw) }));
}
