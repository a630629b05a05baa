import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Model } from "../../fleet/view.ts";
import { chatConstraint } from "../chat/constraint.ts";
import type { RawAsk } from "../shared/call.ts";
import { asked, dispatchAsk, extensionAsk, refuseUnsupported } from "../shared/sampling-fields.ts";
import type { CompletionRequest } from "./schema.ts";

/** OpenAI's, and vLLM's. */
const DEFAULT_MAX_TOKENS = 16;
/** Most choices of one request, over all its prompts. */
const MAX_CHOICES = 4096;
const TAKEN: ReadonlySet<string> = new Set(["add_special_tokens", "best_of"]);

const bad = (param: string, message: string) => new InvalidRequestError(message, { param });

/** Nothing is asked for but the prompt itself, and what the model thinks of it. */
export const asksForPromptOnly = ({ echo, max_tokens }: CompletionRequest): boolean =>
  echo === true && max_tokens === 0;

/** Refuses what contradicts itself, and what no engine's wire can carry. Throws InvalidRequestError. */
export function checkCompletion(body: CompletionRequest): void {
  refuseUnsupported(body, TAKEN);
  const n = body.n ?? 1;
  const bestOf = body.best_of ?? n;
  if (bestOf < n) throw bad("best_of", `best_of (${bestOf}) is below n (${n})`);
  if (bestOf > n)
    throw new UnsupportedError("best_of above n is not supported: ask for that many choices and pick", {
      param: "best_of",
    });
  if (body.stream !== true && body.stream_options)
    throw bad("stream_options", "stream_options needs stream to be true");
  if (body.max_tokens === 0 && body.echo !== true) throw bad("max_tokens", "max_tokens may be 0 with echo only");
  if (asked(body.prompt_embeds))
    throw new UnsupportedError("prompt_embeds are not supported", { param: "prompt_embeds" });
  if (body.truncation_side === "right" && asked(body.truncate_prompt_tokens))
    throw new UnsupportedError("Prompts are cut at their left side only", { param: "truncation_side" });
  if (body.truncate_prompt_tokens === 0)
    throw bad("truncate_prompt_tokens", "truncate_prompt_tokens must be -1, or 1 or more");
  if (asked(body.suffix) && body.suffix !== "") {
    if (body.echo === true) throw bad("echo", "echo and suffix exclude each other");
    if (asked(body.truncate_prompt_tokens))
      throw bad("truncate_prompt_tokens", "truncate_prompt_tokens and suffix exclude each other");
  }
}

/** Refuses more choices than one request may have. */
export function checkChoices(prompts: number, { n }: Pick<CompletionRequest, "n">, param = "prompt"): void {
  if (prompts * (n ?? 1) > MAX_CHOICES)
    throw bad(param, `${prompts} prompts with ${n ?? 1} choices each are too many: ${MAX_CHOICES} choices may be`);
}

/** Tokens that prompts are cut to; undefined: none is cut. -1 is what the context leaves beside the answer. */
export function cutTo(body: CompletionRequest, { entry }: Model): number | undefined {
  const asked = body.truncate_prompt_tokens ?? undefined;
  if (asked !== -1) return asked;
  return entry.contextLength === 0
    ? undefined
    : Math.max(1, entry.contextLength - (body.max_tokens ?? DEFAULT_MAX_TOKENS));
}

/** What a request asks of all its prompts. `stopToken`: ends an answer besides those that the request names. */
export function completionAsk(
  body: CompletionRequest,
  model: Model,
  stopToken: number | undefined,
): Omit<RawAsk, "prompt" | "param"> {
  const keepLast = cutTo(body, model);
  const { keepLast: _, ...dispatch } = dispatchAsk(body);
  const constraint = chatConstraint(body);
  const withLogprobs = body.logprobs !== undefined && body.logprobs !== null;
  const extensions = extensionAsk(body);
  return {
    ...dispatch,
    ...(keepLast !== undefined && { keepLast }),
    model: body.model,
    addSpecialTokens: body.add_special_tokens !== false,
    sampling: {
      ...extensions,
      ...(stopToken !== undefined && { stopTokenIds: [...(extensions.stopTokenIds ?? []), stopToken] }),
      temperature: body.temperature,
      topP: body.top_p,
      maxTokens: asksForPromptOnly(body) ? 1 : (body.max_tokens ?? DEFAULT_MAX_TOKENS),
      stop: typeof body.stop === "string" ? [body.stop] : body.stop,
      n: body.n,
      logprobs: body.logprobs,
      promptLogprobs: body.echo === true ? body.logprobs : undefined,
    },
    constraint,
    tooLong: typeof body.max_tokens === "number" ? "refuse" : "clamp",
    stream: body.stream === true,
    tokenIds: withLogprobs || body.return_token_ids === true || body.stream_options?.continuous_usage_stats === true,
  };
}
