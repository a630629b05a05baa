import { InvalidRequestError } from "../../errors.ts";
import type { Model } from "../../fleet/view.ts";
import { encodePrompt, type Prompt, type PromptEncoder, type RenderedPrompt } from "../../generation/prompt.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import type { EncodeOptions } from "../../tokenizer/tokenizer.ts";

export interface PromptRule {
  /** Only the last of its tokens are kept (`truncate_prompt_tokens`); one that is longer than the context is no error then. */
  readonly keepLast?: number;
  /** The field that the prompt came from, for errors. */
  readonly param: string;
  /** By default no special tokens are added: templates write their own. */
  readonly encode?: EncodeOptions;
}

/** Token ids of a prompt, long texts from another thread. Throws GatewayErrors: for texts that cannot fit, or have no tokens. */
export async function promptOf(
  prompt: RenderedPrompt,
  model: Model,
  { control }: Pick<ServerContext, "control">,
  { signal }: Pick<RequestScope, "signal">,
  { keepLast: keep, param, encode = {} }: PromptRule,
): Promise<Prompt> {
  const limit = keep === undefined ? model.entry.contextLength : 0;
  const encoder: PromptEncoder = {
    tokenizer: model.tokenizer,
    async encodeLong(long, options) {
      const ids = await control.encode(model.entry.tokenizer, long, options, signal);
      model.tokenizer.remember(long, ids, options);
      return ids;
    },
  };
  const ids = await encodePrompt(prompt, encoder, limit, param, encode);
  const tokenIds = keepLast(ids, keep);
  if (tokenIds.length === 0) throw new InvalidRequestError(`The ${param} results in an empty prompt`, { param });
  return { text: prompt.text, tokenIds };
}

/** The last `keep` ids; all, where it is undefined or not above 0. */
export const keepLast = (ids: Uint32Array, keep: number | undefined): Uint32Array =>
  keep !== undefined && keep > 0 && keep < ids.length ? ids.slice(-keep) : ids;
