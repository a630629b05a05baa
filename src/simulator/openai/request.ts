import type { SimulatedModel } from "../model/simulated-model.ts";
import { defaultSampling, type RequestedConstraint, type Sampling } from "../sampling.ts";

/** A body that can't be served: an error of the client. */
export class BodyError extends Error {
  override readonly name = "BodyError";
}

export type Body = Readonly<Record<string, unknown>>;

/** A request for text, chat or completion, as the engine understood it. */
export interface TextRequest {
  /** Prompts in order; more than one only for completions. */
  readonly prompts: readonly Uint32Array[];
  readonly sampling: Sampling;
  readonly stream: boolean;
  /** A stream ends with its token counts. */
  readonly includeUsage: boolean;
  /** Every event carries the token counts so far. */
  readonly continuousUsage: boolean;
  /** vLLM: the ids of prompt and output are told too. */
  readonly returnTokenIds: boolean;
  /** Data-parallel rank that the body names: `routed_dp_rank` (SGLang, vLLM), or `data_parallel_rank`, its older name. */
  readonly rank: number | undefined;
  /** The answer is a call of this function: the tool choice left nothing else. */
  readonly tool: string | undefined;
  /** Finish reason of such a call. */
  readonly toolFinish: "tool_calls" | "stop";
}

/** Reads a body of `/v1/chat/completions`: the prompt is the messages' texts. Throws BodyError. */
export function chatRequest(body: Body, model: SimulatedModel): TextRequest {
  const { messages } = body;
  if (!Array.isArray(messages) || messages.length === 0)
    throw new BodyError("messages: must be a list with one entry at least");
  const tool = forcedTool(body);
  const sampling = samplingOf(body);
  const count = body["top_logprobs"];
  if (body["logprobs"] === true) sampling.logprobs = typeof count === "number" ? count : 0;
  if (tool) sampling.constraint = { kind: "json_schema", value: JSON.stringify(tool.parameters), choices: [] };
  return {
    prompts: [encode(model, messages.map(messageText).join("\n"))],
    sampling,
    ...streaming(body),
    tool: tool?.name,
    toolFinish: body["tool_choice"] === "required" ? "tool_calls" : "stop",
  };
}

/** Reads a body of `/v1/completions`. Throws BodyError. */
export function completionRequest(body: Body, model: SimulatedModel): TextRequest {
  const sampling = samplingOf(body);
  if (typeof body["logprobs"] === "number") sampling.logprobs = body["logprobs"];
  sampling.maxTokens ??= 16;
  return {
    prompts: inputs(body["prompt"], "prompt", model),
    sampling,
    ...streaming(body),
    tool: undefined,
    toolFinish: "stop",
  };
}

/** A text, a list of texts, ids, or a list of lists of ids. Throws BodyError. */
export function inputs(value: unknown, key: string, model: SimulatedModel): Uint32Array[] {
  const isIds = (item: unknown): item is number[] =>
    Array.isArray(item) && item.length > 0 && item.every((id) => Number.isInteger(id) && id >= 0);
  if (typeof value === "string") return [encode(model, value)];
  if (isIds(value)) return [Uint32Array.from(value)];
  if (Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string" || isIds(item)))
    return value.map((item: string | number[]) =>
      typeof item === "string" ? encode(model, item) : Uint32Array.from(item),
    );
  throw new BodyError(`${key}: must be a text, a list of texts, or token ids`);
}

function encode(model: SimulatedModel, text: string): Uint32Array {
  if (!model.tokenizer) throw new BodyError("the simulated engine has no tokenizer");
  return model.tokenizer.encode(text);
}

function messageText(message: unknown): string {
  const content = isRecord(message) ? message["content"] : undefined;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (isRecord(part) && typeof part["text"] === "string" ? part["text"] : "")).join("");
}

function streaming(body: Body) {
  const options = isRecord(body["stream_options"]) ? body["stream_options"] : {};
  return {
    stream: body["stream"] === true,
    includeUsage: options["include_usage"] === true,
    continuousUsage: options["continuous_usage_stats"] === true,
    returnTokenIds: body["return_token_ids"] === true,
    rank: rankOf(body),
  };
}

function rankOf(body: Body): number | undefined {
  const rank = body["routed_dp_rank"] ?? body["data_parallel_rank"] ?? undefined;
  if (rank !== undefined && !Number.isInteger(rank)) throw new BodyError("routed_dp_rank: must be a whole number");
  return rank as number | undefined;
}

function samplingOf(body: Body): Sampling {
  const s = defaultSampling();
  const number = (key: string): number | undefined => {
    const value = body[key];
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "number") throw new BodyError(`${key}: must be a number`);
    return value;
  };
  s.temperature = number("temperature") ?? 1;
  s.topP = number("top_p") ?? 1;
  s.topK = number("top_k") ?? 0;
  s.minP = number("min_p") ?? 0;
  s.frequencyPenalty = number("frequency_penalty") ?? 0;
  s.presencePenalty = number("presence_penalty") ?? 0;
  s.repetitionPenalty = number("repetition_penalty") ?? 1;
  s.n = number("n") ?? 1;
  if (!(s.n >= 1)) throw new BodyError(`n must be at least 1, got ${s.n}.`);
  s.minTokens = number("min_tokens") ?? 0;
  const maxTokens = number("max_completion_tokens") ?? number("max_tokens");
  if (maxTokens !== undefined) s.maxTokens = maxTokens;
  const seed = number("seed");
  if (seed !== undefined) s.seed = seed;
  const { stop, stop_token_ids: stopIds, logit_bias: bias } = body;
  s.stop = typeof stop === "string" ? [stop] : Array.isArray(stop) ? stop.map(String) : [];
  s.stopTokenIds = Array.isArray(stopIds) ? stopIds.map(Number) : [];
  s.logitBias = isRecord(bias) ? Object.entries(bias).map(([id, value]) => [Number(id), Number(value)]) : [];
  s.skipSpecialTokens = body["skip_special_tokens"] !== false;
  s.includeStopStrInOutput = body["include_stop_str_in_output"] === true;
  s.ignoreEos = body["ignore_eos"] === true;
  const constraint = constraintOf(body);
  if (constraint) s.constraint = constraint;
  return s;
}

/** `response_format` of OpenAI, or `structured_outputs` of vLLM. */
function constraintOf(body: Body): RequestedConstraint | undefined {
  const { response_format: format, structured_outputs: outputs } = body;
  if (isRecord(format) && format["type"] === "json_object") return { kind: "json_object", value: "true", choices: [] };
  if (isRecord(format) && format["type"] === "json_schema" && isRecord(format["json_schema"]))
    return { kind: "json_schema", value: JSON.stringify(format["json_schema"]["schema"] ?? {}), choices: [] };
  if (!isRecord(outputs)) return undefined;
  if (outputs["json"] !== undefined) {
    const schema = outputs["json"];
    return { kind: "json_schema", value: typeof schema === "string" ? schema : JSON.stringify(schema), choices: [] };
  }
  if (typeof outputs["regex"] === "string") return { kind: "regex", value: outputs["regex"], choices: [] };
  if (Array.isArray(outputs["choice"])) return { kind: "choice", value: "", choices: outputs["choice"].map(String) };
  return undefined;
}

/** The function that the tool choice forces: the named one, or the first of the list. */
function forcedTool(body: Body): { readonly name: string; readonly parameters: unknown } | undefined {
  const { tools, tool_choice: choice } = body;
  const wanted = isRecord(choice) && isRecord(choice["function"]) ? choice["function"]["name"] : undefined;
  if (wanted === undefined && choice !== "required") return undefined;
  const functions = (Array.isArray(tools) ? tools : []).map((tool: unknown) =>
    isRecord(tool) ? tool["function"] : undefined,
  );
  const found = functions.find((each) => isRecord(each) && (wanted === undefined || each["name"] === wanted));
  if (!isRecord(found)) throw new BodyError("tool_choice: names no function of tools");
  return { name: String(found["name"]), parameters: found["parameters"] ?? { type: "object" } };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
