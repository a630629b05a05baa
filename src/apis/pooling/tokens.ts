import { setImmediate } from "node:timers/promises";
import { ContextLengthError, InvalidRequestError } from "../../errors.ts";
import type { Model } from "../../fleet/view.ts";
import type { ServerContext } from "../../server/context.ts";
import { TokenizerError } from "../../tokenizer/tokenizer.ts";
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
  { control }: Pick<ServerContext, "control">,
  signal: AbortSignal,
): Promise<Uint32Array> {
  const { contextLength } = model.entry;
  const { keep } = rules;
  const { text, at } = input;
  if (keep === undefined && contextLength > 0 && text !== undefined) {
    // What cannot fit is refused before it costs seconds to encode.
    if (text.length > contextLength * model.tokenizer.longestToken)
      throw tooLong(at, contextLength, `${text.length} characters, which is more than fits`);
  }
  let ids = text === undefined ? input.tokenIds : await encoded(text, at, rules, model, control, signal);
  if (ids.length === 0) throw new InvalidRequestError(`'${at}' has no tokens`, { param: at });
  if (keep !== undefined && ids.length > keep) ids = cut(ids, keep, input, rules, model);
  if (contextLength > 0 && ids.length > contextLength) throw tooLong(at, contextLength, `${ids.length} tokens`);
  return ids;
}

const tooLong = (at: string, limit: number, what: string) =>
  new ContextLengthError(
    `This model's maximum context length is ${limit} tokens. However, '${at}' has ${what}. Please shorten it, or have it cut with truncate_prompt_tokens.`,
    { param: at },
  );

async function encoded(
  text: string,
  at: string,
  { addSpecialTokens }: TokenRules,
  { entry, tokenizer }: Model,
  control: ServerContext["control"],
  signal: AbortSignal,
): Promise<Uint32Array> {
  const options = { addSpecialTokens };
  try {
    const ids = tokenizer.encodeSoon(text, options);
    if (ids !== undefined) return ids;
    await setImmediate();
    return await control.encode(entry.tokenizer, text, options, signal);
  } catch (error) {
    if (!(error instanceof TokenizerError)) throw error;
    throw new InvalidRequestError(`'${at}' cannot be tokenized: ${error.message}`, { param: at, cause: error });
  }
}

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
