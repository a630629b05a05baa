import type { SimulatorHost } from "../../host.ts";
import type { SimulatedModel } from "../../model/simulated-model.ts";
import { StructuralTagError, tagText } from "../../output/structural-tag.ts";
import type { Sampling } from "../../sampling.ts";
import type { VllmGenerateRequest } from "./request.ts";

const MAX_LOGPROBS = 20;
const TENSOR_TYPES = ["float32", "int64", "uint32", "bfloat16", "float16", "uint8"];

/**
 * What vLLM 0.32 has against a request: the details of its INVALID_ARGUMENT, or undefined. `prompt` is the input as ids.
 */
export function refusal(
  request: VllmGenerateRequest,
  prompt: Uint32Array,
  { model, ranks }: Pick<SimulatorHost, "model" | "ranks">,
): string | undefined {
  return (
    inputProblem(request, ranks.size) ??
    samplingProblem(request.sampling, model.vocabSize) ??
    promptProblem(prompt, model)
  );
}

/** What vLLM has against sampling parameters, by whatever protocol they came. */
export function samplingProblem(sampling: Sampling, vocabSize: number): string | undefined {
  return numberProblem(sampling, vocabSize) ?? idProblem(sampling, vocabSize) ?? constraintProblem(sampling);
}

function inputProblem(request: VllmGenerateRequest, ranks: number): string | undefined {
  if (request.mediaRefs) return "media_refs sent but --mm-processor is off on this worker";
  if (request.pixelDtype !== undefined) {
    if (!TENSOR_TYPES.includes(request.pixelDtype)) return `Unsupported proto tensor dtype: '${request.pixelDtype}'`;
    return (
      `The decoder prompt contains a(n) image item with ${request.pixelTokens} embedding tokens, which exceeds the ` +
      "pre-allocated encoder cache size 0. Please reduce the input size or increase the encoder cache size by setting " +
      "--limit-mm-per-prompt at startup."
    );
  }
  const rank = request.dataParallelRank;
  if (rank !== undefined && (rank < 0 || rank >= ranks))
    return `data_parallel_rank ${rank} is out of range [0, ${ranks}).`;
  if (request.kvTransferParamsJson !== undefined && !isJsonObject(request.kvTransferParamsJson))
    return "kv_transfer_params_json must be a JSON object";
  return undefined;
}

function isJsonObject(text: string): boolean {
  return jsonObject(text) !== undefined;
}

/** The object that a JSON text is; undefined when it is something else. */
export function jsonObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function numberProblem(s: Sampling, vocabSize: number): string | undefined {
  const named = (text: string, parameter: string, value: string) => `${text} (parameter=${parameter}, value=${value})`;
  const temperature = python(s.temperature);
  if (s.temperature < 0)
    return named(`temperature must be non-negative, got ${temperature}.`, "temperature", temperature);
  if (s.temperature > 2) return named(`temperature must be in [0, 2], got ${temperature}.`, "temperature", temperature);
  if (!(s.topP > 0 && s.topP <= 1))
    return named(`top_p must be in (0, 1], got ${python(s.topP)}.`, "top_p", python(s.topP));
  if (!(s.minP >= 0 && s.minP <= 1)) return `min_p must be in [0, 1], got ${python(s.minP)}.`;
  if (Math.abs(s.presencePenalty) > 2) return `presence_penalty must be in [-2, 2], got ${python(s.presencePenalty)}.`;
  if (Math.abs(s.frequencyPenalty) > 2)
    return `frequency_penalty must be in [-2, 2], got ${python(s.frequencyPenalty)}.`;
  if (!(s.repetitionPenalty > 0))
    return `repetition_penalty must be greater than zero, got ${python(s.repetitionPenalty)}.`;
  if (s.maxTokens === 0) return named("max_tokens must be at least 1, got 0.", "max_tokens", "0");
  if (s.maxTokens !== undefined && s.minTokens > s.maxTokens)
    return `min_tokens must be less than or equal to max_tokens=${s.maxTokens}, got ${s.minTokens}.`;
  if (s.stop.includes("")) return "stop cannot contain an empty string.";
  if (s.temperature === 0 && s.n > 1) return `n must be 1 when using greedy sampling, got ${s.n}.`;
  return (
    logprobsProblem("sample logprobs", "logprobs", s.logprobs, vocabSize) ??
    logprobsProblem("prompt logprobs", "prompt_logprobs", s.promptLogprobs, vocabSize)
  );
}

function logprobsProblem(
  what: string,
  parameter: string,
  asked: number | undefined,
  vocabSize: number,
): string | undefined {
  if (asked === undefined) return undefined;
  if (asked < -1)
    return `${parameter} must be non-negative or -1, got ${asked}. (parameter=${parameter}, value=${asked})`;
  const count = asked === -1 ? vocabSize : asked;
  if (count <= MAX_LOGPROBS) return undefined;
  return `Requested ${what} of ${count}, which is greater than max allowed: ${MAX_LOGPROBS} (parameter=${parameter}, value=${count})`;
}

function idProblem(s: Sampling, vocabSize: number): string | undefined {
  const outside = (ids: number[], parameter: string): string | undefined => {
    const bad = ids.filter((id) => id < 0 || id >= vocabSize);
    if (bad.length === 0) return undefined;
    const list = `[${bad.join(", ")}]`;
    return (
      `token_id(s) ${list} in ${parameter} contain out-of-vocab token ids. Vocabulary size: ${vocabSize} ` +
      `(parameter=${parameter}, value=${list})`
    );
  };
  return (
    outside(
      s.logitBias.map(([id]) => id),
      "logit_bias",
    ) ?? outside(s.stopTokenIds, "stop_token_ids")
  );
}

const SCHEMA_TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];

function constraintProblem(s: Sampling): string | undefined {
  const constraint = s.constraint;
  if (!constraint) return undefined;
  const { kind, value } = constraint;
  if (kind === "json_object")
    return value === "true"
      ? undefined
      : "structured_outputs.json_object must be True if set; omit structured_outputs to disable structured outputs";
  if (kind === "choice") return constraint.choices.length === 0 ? "Choice '[]' cannot be an empty list" : undefined;
  if (kind === "json_schema") {
    if (value === "") return "structured_outputs.json cannot be an empty string";
    const schema = json(value);
    if (schema === undefined) return "Invalid JSON grammar specification.";
    const type = typeof schema === "object" && schema !== null && "type" in schema ? schema.type : undefined;
    if (typeof type === "string" && !SCHEMA_TYPES.includes(type)) return `Grammar error: Invalid type: ${type}`;
  }
  if (kind === "regex") {
    try {
      new RegExp(value);
    } catch {
      return `Grammar error: at 1(8): invalid regex ${JSON.stringify(value)} (in regex): regex parse error`;
    }
  }
  if (kind === "grammar" && /::=\s*\[\s*$/.test(value))
    return "Invalid grammar specification: Failed to convert the grammar from GBNF to Lark: Unexpected end of input";
  if (kind === "structural_tag") {
    try {
      tagText(json(value));
    } catch (error) {
      if (!(error instanceof StructuralTagError)) throw error;
      return `Invalid grammar specification: ${error.message}`;
    }
  }
  return undefined;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The same against a prompt alone. */
export function promptProblem(prompt: Uint32Array, model: SimulatedModel): string | undefined {
  if (prompt.length === 0) return "The decoder prompt cannot be empty";
  const limit = model.contextLength;
  if (prompt.length > limit)
    return (
      `The decoder prompt (length ${prompt.length}) is longer than the maximum model length of ${limit}. ` +
      "Make sure that `max_model_len` is no smaller than the number of text tokens."
    );
  if (prompt.length === limit && model.poolingDim === undefined)
    return (
      `The decoder prompt (length ${prompt.length}) plus the number of requested output tokens (at least 1) is longer ` +
      `than the maximum model length of ${limit}. Make sure that \`max_model_len\` is no smaller than the number of ` +
      "text tokens (prompt + requested output tokens)."
    );
  for (const id of prompt) if (id >= model.vocabSize) return `Token id ${id} is out of vocabulary`;
  return undefined;
}

/** A number as Python prints a float. */
function python(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}
