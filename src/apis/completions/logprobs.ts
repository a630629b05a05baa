/** Logprobs in the form of OpenAI's Completions. */
import type { TokenLogprobs } from "../../engines/engine.ts";
import type { LogprobEntry, TopLogprob } from "../../generation/events.ts";
import type { TokenDecoder, Tokenizer } from "../../tokenizer/tokenizer.ts";
import { LOWEST } from "../openai/logprobs.ts";

/** Four lists of one length. What has no value, as the first token of all, is null. */
export interface LegacyLogprobs {
  readonly tokens: string[];
  readonly token_logprobs: (number | null)[];
  /** The alternatives and the token itself. */
  readonly top_logprobs: (Record<string, number> | null)[];
  /** Where in the text the token begins, in characters (code points, as Python counts). */
  readonly text_offset: number[];
}

export const noLogprobs = (): LegacyLogprobs => ({
  tokens: [],
  token_logprobs: [],
  top_logprobs: [],
  text_offset: [],
});

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A token as OpenAI shows it: one that is a part of a character by its bytes, `bytes:\xe2\x82`. `asId`: vLLM's form. */
export function legacyToken(id: number, tokenizer: Tokenizer, asId: boolean): string {
  if (asId) return `token_id:${id}`;
  const bytes = tokenizer.tokenBytes(id);
  try {
    return strict.decode(bytes);
  } catch {
    return `bytes:${Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}`;
  }
}

/** Characters of a text, as `text_offset` counts them. */
export function characters(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) count--;
  return count;
}

/** Draws a row of tokens whose text begins at `offset`; `decoder` is where that text goes on. */
export class LegacyDrawing {
  constructor(
    private readonly tokenizer: Tokenizer,
    private readonly decoder: TokenDecoder,
    private readonly asIds: boolean,
    private offset: number,
  ) {}

  /** An answer's next tokens. `entries` may lack some of them. */
  output(ids: readonly number[], entries: readonly LogprobEntry[]): LegacyLogprobs {
    const out = noLogprobs();
    let k = 0;
    for (const id of ids) {
      const entry = entries[k];
      const at = this.advance(id);
      if (entry?.id !== id) continue;
      k++;
      this.push(out, id, entry.logprob, entry.top, at);
    }
    return out;
  }

  /** A prompt's tokens; those before `from` are no part of its text, which has `length` characters. */
  prompt({ tokenIds, logprobs, top }: TokenLogprobs, from: number, length: number): LegacyLogprobs {
    const out = noLogprobs();
    for (const [i, id] of tokenIds.entries()) {
      const at = i < from ? this.offset : this.advance(id);
      const row = top[i];
      const others = row?.tokenIds.map((other, n) => ({ id: other, logprob: row.logprobs[n]! })) ?? [];
      this.push(out, id, logprobs[i] ?? null, others, Math.min(at, length));
    }
    return out;
  }

  private advance(id: number): number {
    const at = this.offset;
    this.offset += characters(this.decoder.push(id));
    return at;
  }

  private push(
    out: LegacyLogprobs,
    id: number,
    logprob: number | null,
    top: readonly TopLogprob[],
    offset: number,
  ): void {
    const text = (of: number) => legacyToken(of, this.tokenizer, this.asIds);
    out.tokens.push(text(id));
    out.token_logprobs.push(logprob === null ? null : Math.max(logprob, LOWEST));
    out.text_offset.push(offset);
    if (logprob === null) {
      out.top_logprobs.push(null);
      return;
    }
    const row = new Map<string, number>();
    for (const entry of [{ id, logprob }, ...top]) {
      const name = text(entry.id);
      if (!row.has(name)) row.set(name, Math.max(entry.logprob, LOWEST));
    }
    out.top_logprobs.push(Object.fromEntries(row));
  }
}
