import type { Constraint, SamplingParams } from "../../engines/engine.ts";
import { ContextLengthError, InvalidRequestError, UnsupportedError } from "../../errors.ts";
import { asked, refuseUnsupportedPrompt } from "./messages.ts";
import type { ChatRequest } from "./schema.ts";

/** What of the model a request's sampling depends on. */
export interface SamplingContext {
  /** Tokens of prompt and answer together; 0 = unknown. */
  readonly contextLength: number;
  readonly vocabSize: number;
  /** The model's own defaults under their generation_config names. */
  readonly defaults: Readonly<Record<string, number>>;
}

/** Fields that would change the answer but that no engine's wire can carry: refused rather than dropped. */
const UNSUPPORTED = [
  "length_penalty",
  "use_beam_search",
  "best_of",
  "bad_words",
  "allowed_token_ids",
  "stop_regex",
  "repetition_detection",
  "thinking_token_budget",
  "lora_path",
  "cache_salt",
  "extra_key",
  "vllm_xargs",
  "custom_params",
  "custom_logit_processor",
  "prompt_logprobs",
  "logprob_token_ids",
  "return_hidden_states",
  "return_routed_experts",
  "add_special_tokens",
] as const;

function refuseUnsupported(body: ChatRequest): void {
  const fields = body as Record<string, unknown>;
  for (const name of UNSUPPORTED) {
    if (
      asked(fields[name]) &&
      !(name === "length_penalty" && fields[name] === 1) &&
      !(name === "best_of" && fields[name] === 1)
    ) {
      throw new UnsupportedError(`${name} is not supported`, { param: name });
    }
  }
  refuseUnsupportedPrompt(body);
  if (body.modalities?.some((m) => m !== "text"))
    throw new UnsupportedError("Only text can be generated", { param: "modalities" });
  if (asked(body.audio)) throw new UnsupportedError("audio is not supported", { param: "audio" });
  if (body.echo === true) throw new UnsupportedError("echo is not supported", { param: "echo" });
}

function logitBias(body: ChatRequest, vocabSize: number): ReadonlyMap<number, number> | undefined {
  if (!body.logit_bias) return undefined;
  const bias = new Map<number, number>();
  for (const [key, value] of Object.entries(body.logit_bias)) {
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

/** Longest answer: what was asked for, or what the context leaves. */
export function answerLength(body: ChatRequest, promptTokens: number, contextLength: number): number | undefined {
  const wanted = body.max_completion_tokens ?? body.max_tokens ?? undefined;
  if (contextLength === 0) return wanted;
  const room = contextLength - promptTokens;
  if (room < 1 || (wanted !== undefined && wanted > room)) {
    const answer = wanted === undefined ? "" : ` and the answer ${wanted} more (${promptTokens + wanted} in all)`;
    throw new ContextLengthError(
      `This model's maximum context length is ${contextLength} tokens. However, the messages resulted in ${promptTokens} tokens${answer}. Please shorten the messages or the answer.`,
      { param: "messages" },
    );
  }
  return wanted ?? room;
}

/**
 * The request's own values where given, else the model's defaults, else the API's (temperature 1, top_p 1). `constraint`: what the engine
 * is to enforce.
 */
export function chatSampling(
  body: ChatRequest,
  promptTokens: number,
  model: SamplingContext,
  constraint: Constraint | undefined,
): SamplingParams {
  refuseUnsupported(body);
  const { defaults } = model;
  if (typeof body.top_logprobs === "number" && body.logprobs !== true) {
    throw new InvalidRequestError("top_logprobs needs logprobs to be true", { param: "top_logprobs" });
  }
  const maxTokens = answerLength(body, promptTokens, model.contextLength);
  const minTokens = body.min_tokens ?? 0;
  if (maxTokens !== undefined && minTokens > maxTokens) {
    throw new InvalidRequestError(`min_tokens (${minTokens}) is above the longest answer (${maxTokens})`, {
      param: "min_tokens",
    });
  }
  const bias = logitBias(body, model.vocabSize);
  const seed = body.seed ?? body.sampling_seed;
  const stop = typeof body.stop === "string" ? [body.stop] : (body.stop ?? []);
  return {
    temperature: body.temperature ?? defaults["temperature"] ?? 1,
    topP: body.top_p ?? defaults["top_p"] ?? 1,
    topK: Math.max(0, body.top_k ?? defaults["top_k"] ?? 0),
    minP: body.min_p ?? defaults["min_p"] ?? 0,
    repetitionPenalty: body.repetition_penalty ?? defaults["repetition_penalty"] ?? 1,
    frequencyPenalty: body.frequency_penalty ?? 0,
    presencePenalty: body.presence_penalty ?? 0,
    ...(maxTokens !== undefined && { maxTokens }),
    minTokens,
    stop,
    stopTokenIds: body.stop_token_ids ?? [],
    ignoreEos: body.ignore_eos === true,
    skipSpecialTokens: body.skip_special_tokens !== false,
    spacesBetweenSpecialTokens: body.spaces_between_special_tokens !== false,
    includeStopStrInOutput: body.include_stop_str_in_output === true || body.no_stop_trim === true,
    n: body.n ?? 1,
    ...(body.logprobs === true && { logprobs: body.top_logprobs ?? 0 }),
    ...(seed !== undefined && seed !== null && { seed }),
    ...(bias && { logitBias: bias }),
    ...(constraint && { constraint }),
  };
}
