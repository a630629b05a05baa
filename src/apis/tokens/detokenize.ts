import { InvalidRequestError } from "../../errors.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import type { TokenDecoder } from "../../tokenizer/tokenizer.ts";
import { JsonBody } from "./json-body.ts";
import { requestedTokenizer } from "./lookup.ts";
import type { DetokenizeRequest } from "./schema.ts";
import { takingTurns } from "./turns.ts";

/** Ids between two offers to give way. */
const SLICE = 1 << 12;
/** Ids travel as 32 bits everywhere. */
const LARGEST_ID = 0xffff_ffff;

/** How a route answers: SMG and vLLM differ in the name of the text and in what happens to special tokens. */
export interface DetokenizeForm {
  readonly key: "text" | "prompt";
  readonly skipByDefault: boolean;
}

/** Answers a detokenize request. Ids that the vocabulary does not have decode to nothing, as in the Rust library. */
export async function handleDetokenize(
  body: DetokenizeRequest,
  { key, skipByDefault }: DetokenizeForm,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const { tokenizer } = requestedTokenizer(body.model, context);
    const tokens: unknown = body.tokens;
    if (!Array.isArray(tokens))
      throw new InvalidRequestError("Invalid 'tokens': expected a list of token ids", { param: "tokens" });
    const decoder = tokenizer.decoder({ skipSpecialTokens: body.skip_special_tokens ?? skipByDefault });
    const turn = takingTurns(scope.signal);
    const out = new JsonBody(turn);
    const write = async (ids: readonly unknown[], at: string) => {
      out.raw('"');
      for (let from = 0; from < ids.length; from += SLICE) {
        out.part(decoded(ids, from, Math.min(from + SLICE, ids.length), decoder, at));
        const due = turn();
        if (due !== undefined) await due;
      }
      out.part(decoder.end());
      out.raw('"');
    };
    out.raw(`{"${key}":`);
    if (!Array.isArray(tokens[0])) await write(tokens, "tokens");
    else {
      out.raw("[");
      for (const [i, ids] of (tokens as unknown[]).entries()) {
        const at = `tokens[${i}]`;
        if (!Array.isArray(ids))
          throw new InvalidRequestError(`Invalid '${at}': expected a list of token ids like the others`, { param: at });
        if (i > 0) out.raw(",");
        await write(ids, at);
        const due = turn();
        if (due !== undefined) await due;
      }
      out.raw("]");
    }
    out.raw("}");
    return out.response({ "x-request-id": scope.id });
  } finally {
    scope.finish();
  }
}

/** Text of `ids[from, to)` as far as it is certain. */
function decoded(ids: readonly unknown[], from: number, to: number, decoder: TokenDecoder, at: string): string {
  let text = "";
  for (let i = from; i < to; i++) {
    const id = ids[i];
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id > LARGEST_ID)
      throw new InvalidRequestError(`Invalid '${at}[${i}]': expected a token id`, { param: `${at}[${i}]` });
    text += decoder.push(id);
  }
  return text;
}
