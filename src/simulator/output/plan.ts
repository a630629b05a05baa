import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import type { OutputPlan } from "../core/sequence.ts";
import type { Sampling } from "../sampling.ts";
import type { Content } from "./answer.ts";

/** A logit bias from here on counts as "always this token". */
const FORCING_BIAS = 50;

export interface PlanInput {
  readonly content: Content;
  readonly sampling: Sampling;
  /** Tokens that context and `max_tokens` leave; at least 1. */
  readonly limit: number;
  readonly eosTokenIds: readonly number[];
  readonly otherEosTokenIds: readonly number[];
  /** An EOS of `eosTokenIds` is named as matched stop too. */
  readonly namesEos: boolean;
  /** For stop strings; without it they never match. */
  readonly tokenizer: Tokenizer | undefined;
  /** Finish reason instead of the one that follows; with it no EOS is added. */
  readonly finishReason?: string;
}

/**
 * Works out a whole generation beforehand: the content, cut by the limit, stop ids, stop strings and EOS, with `min_tokens`,
 * `ignore_eos` and forcing logit biases applied.
 */
export function planOutput(input: PlanInput): OutputPlan {
  const { content, sampling, limit, finishReason } = input;
  const eos = input.eosTokenIds[0];
  const forced = forcedToken(sampling);
  const endless = sampling.ignoreEos || eos === undefined || forced !== undefined;
  const natural = Math.max(content.natural, sampling.minTokens);
  const plain = (position: number): number =>
    !endless && finishReason === undefined && position >= natural ? eos : content.idAt(position);
  const stopIds = new Set(sampling.stopTokenIds);
  const isEnd = (id: number): boolean =>
    stopIds.has(id) || (!sampling.ignoreEos && (input.eosTokenIds.includes(id) || input.otherEosTokenIds.includes(id)));
  const idAt =
    forced === undefined
      ? plain
      : (position: number): number =>
          position < sampling.minTokens && isEnd(forced) ? content.idAt(position) : forced;

  const end =
    finishReason === undefined ? (endless ? Number.POSITIVE_INFINITY : natural + 1) : Math.max(content.natural, 1);
  const length = Math.min(limit, end);
  const stop = findStop(input, idAt, length, isEnd);
  if (stop) return { idAt, finishReason: "stop", ...stop };
  if (finishReason !== undefined && end <= limit) return { idAt, length, finishReason };
  return { idAt, length, finishReason: !endless && end <= limit ? "stop" : "length" };
}

function forcedToken(sampling: Sampling): number | undefined {
  let best: number | undefined;
  let highest = FORCING_BIAS;
  for (const [id, bias] of sampling.logitBias)
    if (bias >= highest) {
      best = id;
      highest = bias;
    }
  return best;
}

interface Stop {
  readonly length: number;
  readonly endsWithStop?: boolean;
  readonly matchedTokenId?: number;
  readonly matchedStop?: string;
}

/** First stop before `length`, if any. */
function findStop(
  input: PlanInput,
  idAt: (position: number) => number,
  length: number,
  isEnd: (id: number) => boolean,
): Stop | undefined {
  const { sampling, tokenizer } = input;
  const strings = tokenizer ? sampling.stop : [];
  const longest = Math.max(0, ...strings.map((stop) => stop.length));
  const decoder =
    strings.length > 0 ? tokenizer!.decoder({ skipSpecialTokens: sampling.skipSpecialTokens }) : undefined;
  let text = "";
  for (let position = 0; position < length; position++) {
    const id = idAt(position);
    if (position >= sampling.minTokens && isEnd(id)) {
      const plainEos = !sampling.ignoreEos && input.eosTokenIds.includes(id) && !input.namesEos;
      return { length: position + 1, endsWithStop: true, ...(plainEos ? {} : { matchedTokenId: id }) };
    }
    if (!decoder) continue;
    text += decoder.push(id);
    if (position >= sampling.minTokens) {
      const found = earliest(text, strings);
      if (found !== undefined) return { length: position + 1, matchedStop: found };
    }
    // Only what a stop could still begin in has to stay.
    if (text.length > 4 * longest + 64) text = text.slice(-longest);
  }
  return undefined;
}

function earliest(text: string, stops: readonly string[]): string | undefined {
  let best: string | undefined;
  let at = Number.POSITIVE_INFINITY;
  for (const stop of stops) {
    const index = text.indexOf(stop);
    if (index >= 0 && index < at) {
      at = index;
      best = stop;
    }
  }
  return best;
}
