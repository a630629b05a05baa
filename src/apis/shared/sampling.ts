import type { Constraint, SamplingParams } from "../../engines/engine.ts";
import { ContextLengthError, InvalidRequestError } from "../../errors.ts";

type Maybe<T> = T | null | undefined;

/**
 * What a request asks of the sampling, in the words of no API. Absent and null mean the same: the model's default, else the neutral
 * value. The ranges of numbers are the business of the API's schema.
 */
export interface SamplingAsk {
  readonly temperature?: Maybe<number>;
  readonly topP?: Maybe<number>;
  /** Below 1: off. */
  readonly topK?: Maybe<number>;
  readonly minP?: Maybe<number>;
  readonly repetitionPenalty?: Maybe<number>;
  readonly frequencyPenalty?: Maybe<number>;
  readonly presencePenalty?: Maybe<number>;
  /** Absent: what the context leaves. */
  readonly maxTokens?: Maybe<number>;
  readonly minTokens?: Maybe<number>;
  readonly stop?: Maybe<readonly string[]>;
  readonly stopTokenIds?: Maybe<readonly number[]>;
  readonly ignoreEos?: Maybe<boolean>;
  /** True by default. */
  readonly skipSpecialTokens?: Maybe<boolean>;
  /** True by default. */
  readonly spacesBetweenSpecialTokens?: Maybe<boolean>;
  /** The text of the stop stays in the answer. */
  readonly includeStop?: Maybe<boolean>;
  readonly n?: Maybe<number>;
  readonly seed?: Maybe<number>;
  /** Alternatives for each token; 0: the token's own logprob alone. Absent: none. */
  readonly logprobs?: Maybe<number>;
  readonly promptLogprobs?: Maybe<number>;
  /** Token ids, as text, with what is added to their logits. */
  readonly logitBias?: Maybe<Readonly<Record<string, number>>>;
}

/** What of the model a request's sampling depends on. */
export interface SamplingContext {
  /** Tokens of prompt and answer together; 0 = unknown. */
  readonly contextLength: number;
  readonly vocabSize: number;
  /** The model's own defaults under their generation_config names. */
  readonly defaults: Readonly<Record<string, number>>;
}

export interface LengthRule {
  /** An answer that would not fit is refused, or shortened to what the context leaves. */
  readonly tooLong: "refuse" | "clamp";
  /** The field that the prompt came from. */
  readonly param: string;
}

/** Longest answer: what was asked for, or what the context leaves. A prompt that leaves nothing is refused in any case. */
export function answerLength(
  wanted: number | undefined,
  promptTokens: number,
  contextLength: number,
  { tooLong, param }: LengthRule,
): number | undefined {
  if (contextLength === 0) return wanted;
  const room = contextLength - promptTokens;
  if (room >= 1 && wanted !== undefined && wanted > room && tooLong === "clamp") return room;
  if (room < 1 || (wanted !== undefined && wanted > room)) {
    const answer = wanted === undefined ? "" : ` and the answer ${wanted} more (${promptTokens + wanted} in all)`;
    throw new ContextLengthError(
      `This model's maximum context length is ${contextLength} tokens. However, the ${param} resulted in ${promptTokens} tokens${answer}. Please shorten the ${param} or the answer.`,
      { param, limit: contextLength, tokens: room < 1 ? promptTokens : promptTokens + (wanted ?? 0) },
    );
  }
  return wanted ?? room;
}

function logitBias(
  given: Readonly<Record<string, number>>,
  vocabSize: number,
): ReadonlyMap<number, number> | undefined {
  const bias = new Map<number, number>();
  for (const [key, value] of Object.entries(given)) {
    const id = Number(key);
    if (!/^\d+$/.test(key) || (vocabSize > 0 && id >= vocabSize)) {
      throw new InvalidRequestError(`logit_bias: '${key.slice(0, 40)}' is not a token id of this model`, {
        param: "logit_bias",
      });
    }
    bias.set(id, value);
  }
  return bias.size > 0 ? bias : undefined;
}

/**
 * The request's own values where given, else the model's defaults, else the neutral ones (temperature 1, top_p 1). `constraint`: what the
 * engine is to enforce. Throws InvalidRequestError.
 */
export function samplingParams(
  ask: SamplingAsk,
  promptTokens: number,
  { contextLength, vocabSize, defaults }: SamplingContext,
  constraint: Constraint | undefined,
  rule: LengthRule,
): SamplingParams {
  const maxTokens = answerLength(ask.maxTokens ?? undefined, promptTokens, contextLength, rule);
  const minTokens = ask.minTokens ?? 0;
  if (maxTokens !== undefined && minTokens > maxTokens) {
    throw new InvalidRequestError(`min_tokens (${minTokens}) is above the longest answer (${maxTokens})`, {
      param: "min_tokens",
    });
  }
  const bias = ask.logitBias ? logitBias(ask.logitBias, vocabSize) : undefined;
  const { logprobs, promptLogprobs, seed } = ask;
  return {
    temperature: ask.temperature ?? defaults["temperature"] ?? 1,
    topP: ask.topP ?? defaults["top_p"] ?? 1,
    topK: Math.max(0, ask.topK ?? defaults["top_k"] ?? 0),
    minP: ask.minP ?? defaults["min_p"] ?? 0,
    repetitionPenalty: ask.repetitionPenalty ?? defaults["repetition_penalty"] ?? 1,
    frequencyPenalty: ask.frequencyPenalty ?? 0,
    presencePenalty: ask.presencePenalty ?? 0,
    ...(maxTokens !== undefined && { maxTokens }),
    minTokens,
    stop: ask.stop ?? [],
    stopTokenIds: ask.stopTokenIds ?? [],
    ignoreEos: ask.ignoreEos === true,
    skipSpecialTokens: ask.skipSpecialTokens !== false,
    spacesBetweenSpecialTokens: ask.spacesBetweenSpecialTokens !== false,
    includeStopStrInOutput: ask.includeStop === true,
    n: ask.n ?? 1,
    ...(logprobs !== undefined && logprobs !== null && { logprobs }),
    ...(promptLogprobs !== undefined && promptLogprobs !== null && { promptLogprobs }),
    ...(seed !== undefined && seed !== null && { seed }),
    ...(bias && { logitBias: bias }),
    ...(constraint && { constraint }),
  };
}
