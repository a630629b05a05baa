import type { Constraint, SamplingParams } from "../../engines/engine.ts";
import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import { type LengthRule, type SamplingAsk, type SamplingContext, samplingParams } from "../shared/sampling.ts";
import { asked, extensionAsk, refuseUnsupported } from "../shared/sampling-fields.ts";
import type { ChatRequest } from "./schema.ts";

export const CHAT_LENGTH: LengthRule = { tooLong: "refuse", param: "messages" };

/** What a request asks of the sampling. Throws InvalidRequestError for what no engine's wire can carry. */
export function chatAsk(body: ChatRequest): SamplingAsk {
  refuseUnsupported(body);
  if (body.modalities?.some((m) => m !== "text"))
    throw new UnsupportedError("Only text can be generated", { param: "modalities" });
  if (asked(body.audio)) throw new UnsupportedError("audio is not supported", { param: "audio" });
  if (body.echo === true) throw new UnsupportedError("echo is not supported", { param: "echo" });
  if (typeof body.top_logprobs === "number" && body.logprobs !== true) {
    throw new InvalidRequestError("top_logprobs needs logprobs to be true", { param: "top_logprobs" });
  }
  return {
    ...extensionAsk(body),
    temperature: body.temperature,
    topP: body.top_p,
    maxTokens: body.max_completion_tokens ?? body.max_tokens,
    stop: typeof body.stop === "string" ? [body.stop] : body.stop,
    n: body.n,
    logprobs: body.logprobs === true ? (body.top_logprobs ?? 0) : undefined,
  };
}

/** The same with what the model adds to it. `constraint`: what the engine is to enforce. */
export const chatSampling = (
  body: ChatRequest,
  promptTokens: number,
  model: SamplingContext,
  constraint: Constraint | undefined,
): SamplingParams => samplingParams(chatAsk(body), promptTokens, model, constraint, CHAT_LENGTH);
