import { ContextLengthError, InvalidRequestError } from "../../errors.ts";
import type { Model } from "../../fleet/view.ts";
import type { ServerContext } from "../../server/context.ts";
import { promptOf } from "../shared/prompt.ts";
import type { PoolingInput } from "./inputs.ts";
import type { PoolingOptions } from "./schema.ts";

/** How texts become ids. */
export interface TokenRules {
  /** The post-processor puts its tokens around texts (`[CLS]` … `[SEP]`). */
  readonly addSpecialTokens: boolean;
  /** Longer inputs are cut to this number of tokens; undefined: they are refused. */
  readonly keep: number | undefined;
  /** End that is cut off, special tokens and all; undefined: behind the text, between the special tokens. */
  readonly cutAt: "left" | "right" | undefined;
}

/**
 * The rules that a request asks for. As in vLLM, `truncate_prompt_tokens` of -1 cuts to the model's context, and one larger than that is
 * refused. Throws InvalidRequestError.
 */
export function tokenRules(options: PoolingOptions, { entry }: Model): TokenRules {
  const asked = options.truncate_prompt_tokens ?? undefined;
  const param = "truncate_prompt_tokens";
  if (asked === 0) throw new InvalidRequestError(`Invalid '${param}': expected -1, or 1 or more`, { param });
  if (asked !== undefined && entry.contextLength > 0 && asked > entry.contextLength)
    throw new InvalidRequestError(`Invalid '${param}': the model's context has ${entry.contextLength} tokens`, {
      param,
    });
  return {
    addSpecialTokens: options.add_special_tokens ?? true,
    keep: asked === -1 ? entry.contextLength || Number.POSITIVE_INFINITY : asked,
    cutAt: options.truncation_side ?? undefined,
  };
}

/** Token ids of an input, at most as many as the model's context has. Throws GatewayErrors, and the signal's reason. */
export async function inputTokens(
  input: PoolingInput,
  rules: TokenRules,
  model: Model,
  context: Pick<ServerContext, "control">,
  signal: AbortSignal,
): Promise<Uint32Array> {
  const { contextLength } = model.entry;
  const { addSpecialTokens, keep } = rules;
  const { at } = input;
  // Of a text that is to be cut, whatever its length, all ids are needed: its beginning is what stays.
  const rule = { param: at, encode: { addSpecialTokens }, ...(keep !== undefined && { keepLast: 0 }) };
  let ids = input.tokenIds ?? (await promptOf({ text: input.text }, model, context, { signal }, rule)).tokenIds;
  if (keep !== undefined && ids.length > keep) ids = cut(ids, keep, input, rules, model);
  if (contextLength > 0 && ids.length > contextLength) throw tooLong(at, contextLength, ids.length);
  return ids;
}

const tooLong = (at: string, limit: number, tokens: number) =>
  new ContextLengthError(
    `This model's maximum context length is ${limit} tokens. However, '${at}' has ${tokens} tokens. Please shorten it, or have it cut with truncate_prompt_tokens.`,
    { param: at, tokens, limit },
  );

/** As transformers and vLLM cut: a text keeps the special tokens around it unless the side to cut was named. */
function cut(
  ids: Uint32Array,
  keep: number,
  { text }: PoolingInput,
  { addSpecialTokens, cutAt }: TokenRules,
  { tokenizer }: Model,
): Uint32Array {
  if (cutAt === "left") return ids.slice(-keep);
  const { single } = tokenizer.postProcessor;
  const isAround = addSpecialTokens && text !== undefined && cutAt === undefined;
  const after = isAround ? single.length - 1 - single.lastIndexOf("A") : 0;
  if (isAround && keep < single.length - 1) {
    const param = "truncate_prompt_tokens";
    throw new InvalidRequestError(`Invalid '${param}': the model's special tokens alone are ${single.length - 1}`, {
      param,
    });
  }
  const out = ids.slice(0, keep);
  out.set(ids.subarray(ids.length - after), keep - after);
  return out;
}
