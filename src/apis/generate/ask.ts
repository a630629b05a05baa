import type { Constraint } from "../../engines/engine.ts";
import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { RawAsk } from "../shared/call.ts";
import { jsonText, onlyOne } from "../shared/constraint.ts";
import { asked } from "../shared/sampling-fields.ts";
import { type GenerateRequest, generateRequest, type SamplingParameters, samplingParameters } from "./schema.ts";

/** SGLang's. */
const DEFAULT_MAX_TOKENS = 128;

/** Fields that say nothing of the answer. */
const IGNORED: ReadonlySet<string> = new Set([
  "log_metrics",
  "no_logs",
  "session_id",
  "conversation_id",
  "routing_key",
  "custom_labels",
  "priority",
  "user",
]);

const bad = (param: string, message: string) => new InvalidRequestError(message, { param });

/** One prompt of a request, with what is asked of it. */
export interface GenerateItem {
  readonly sampling: SamplingParameters;
  readonly withLogprobs: boolean;
  /** Token of the prompt from which on logprobs are shown; -1: none is. */
  readonly logprobStart: number;
  readonly topLogprobs: number;
  /** Nothing is asked for but the prompt: the token that engines make all the same is not shown. */
  readonly onlyPrompt: boolean;
  /** As the client named it. */
  readonly rid: string | undefined;
}

/** What is asked of each of `count` prompts. Throws InvalidRequestError, by name for what SGLang has and this has not. */
export function generateItems(body: GenerateRequest, count: number): GenerateItem[] {
  refuseOthers(body, generateRequest.properties, "");
  const { rid } = body;
  if (Array.isArray(rid) && (rid.length !== count || new Set(rid).size !== count))
    throw bad("rid", `rid must have ${count} different ids, one for each prompt`);
  const of = <T>(name: string, value: T | readonly (T | null)[] | null | undefined, usual: T): T[] =>
    spread(name, value, count, usual);
  const sampling = of<SamplingParameters>("sampling_params", body.sampling_params, {});
  const withLogprobs = of("return_logprob", body.return_logprob, false);
  const starts = of("logprob_start_len", body.logprob_start_len, -1);
  const tops = of("top_logprobs_num", body.top_logprobs_num, 0);
  const list = Array.isArray(body.sampling_params);
  return sampling.map((params, i) => {
    refuseOthers(params, samplingParameters.properties, list ? `sampling_params[${i}].` : "sampling_params.");
    if ((params.n ?? 1) !== (sampling[0]?.n ?? 1)) throw bad("sampling_params", "n must be the same for all prompts");
    return {
      sampling: params,
      withLogprobs: withLogprobs[i]!,
      logprobStart: starts[i]!,
      topLogprobs: tops[i]!,
      onlyPrompt: params.max_new_tokens === 0,
      rid: ridOf(rid, i, count),
    };
  });
}

function ridOf(rid: GenerateRequest["rid"], at: number, count: number): string | undefined {
  if (!rid) return undefined;
  if (typeof rid === "string") return count === 1 ? rid : `${rid}_${at}`;
  return rid[at];
}

function spread<T>(name: string, value: T | readonly (T | null)[] | null | undefined, count: number, usual: T): T[] {
  if (!Array.isArray(value)) return new Array<T>(count).fill((value as T | null | undefined) ?? usual);
  if (value.length === count) return value.map((one: T | null) => one ?? usual);
  throw bad(name, `${name} has ${value.length} values for ${count} prompts`);
}

function refuseOthers(given: object, known: object, at: string): void {
  for (const [name, value] of Object.entries(given)) {
    if (Object.hasOwn(known, name) || IGNORED.has(name) || !asked(value)) continue;
    throw new UnsupportedError(`${at}${name.slice(0, 64)} is not supported`, { param: `${at}${name.slice(0, 64)}` });
  }
}

/** The same as a call. `max_new_tokens`: 128 by default; null is what the context leaves, as in SGLang. */
export function rawAsk(item: GenerateItem, body: GenerateRequest, model: string): Omit<RawAsk, "prompt" | "param"> {
  const { sampling: params, withLogprobs, logprobStart, topLogprobs, rid } = item;
  const { max_new_tokens: asked } = params;
  const rank = body.routed_dp_rank ?? body.data_parallel_rank ?? undefined;
  return {
    model,
    ...(rid !== undefined && { requestId: rid }),
    ...(rank !== undefined && { dataParallelRank: rank }),
    addSpecialTokens: true,
    sampling: {
      temperature: params.temperature,
      topP: params.top_p,
      topK: params.top_k,
      minP: params.min_p,
      repetitionPenalty: params.repetition_penalty,
      frequencyPenalty: params.frequency_penalty,
      presencePenalty: params.presence_penalty,
      maxTokens: item.onlyPrompt ? 1 : asked === undefined ? DEFAULT_MAX_TOKENS : asked,
      minTokens: params.min_new_tokens,
      stop: typeof params.stop === "string" ? [params.stop] : params.stop,
      stopTokenIds: params.stop_token_ids,
      ignoreEos: params.ignore_eos,
      skipSpecialTokens: params.skip_special_tokens,
      spacesBetweenSpecialTokens: params.spaces_between_special_tokens,
      includeStop: params.no_stop_trim,
      n: params.n,
      seed: params.sampling_seed,
      logitBias: params.logit_bias,
      logprobs: withLogprobs ? topLogprobs : undefined,
      promptLogprobs: withLogprobs && logprobStart >= 0 ? topLogprobs : undefined,
    },
    constraint: constraintOf(params),
    tooLong: typeof asked === "number" ? "refuse" : "clamp",
    stream: body.stream === true,
    tokenIds: true,
  };
}

function constraintOf(params: SamplingParameters): Constraint | undefined {
  const { json_schema: schema, regex, ebnf, structural_tag: tag } = params;
  const found: Constraint[] = [];
  if (schema) found.push({ kind: "json_schema", schema: jsonText(schema, "sampling_params.json_schema") });
  if (regex) found.push({ kind: "regex", pattern: regex });
  if (ebnf) found.push({ kind: "grammar", grammar: ebnf });
  if (tag) found.push({ kind: "structural_tag", tag: jsonText(tag, "sampling_params.structural_tag") });
  return onlyOne(found, "structural_tag");
}
