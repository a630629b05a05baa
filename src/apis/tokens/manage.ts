import { InvalidRequestError, TokenizerNotFoundError } from "../../errors.ts";
import type { ServerContext } from "../../server/context.ts";
import { type KnownTokenizer, knownTokenizer, knownTokenizers, type TokenizerInfo } from "./lookup.ts";
import type { AddTokenizerRequest } from "./schema.ts";

/** How far a tokenizer is, in SMG's form. */
export interface TokenizerStatus {
  readonly id: string;
  readonly status: "pending" | "completed" | "failed";
  readonly message: string;
  readonly vocab_size?: number;
}

/** Begins to load a tokenizer. Throws TokenizerExistsError. */
export async function addTokenizer(body: AddTokenizerRequest, { control }: ServerContext): Promise<TokenizerStatus> {
  const { name, source, chat_template_path: path } = body;
  const { id } = await control.addTokenizer({ name, source, ...(path && { chatTemplatePath: path }) });
  return { id, status: "pending", message: `Tokenizer '${name}' is being loaded from ${source}` };
}

export function listTokenizers(context: ServerContext): { tokenizers: readonly TokenizerInfo[] } {
  return { tokenizers: knownTokenizers(context).map(({ info }) => info) };
}

/** Answers `GET /v1/tokenizers/{name}` and `GET /v1/tokenizers/{name}/status`, where a name may hold slashes. */
export function tokenizerOrStatus(path: string, context: ServerContext): TokenizerInfo | TokenizerStatus {
  const name = path.replace(/\/status$/, "");
  if (name === path) return knownTokenizer(path, context).info;
  try {
    return knownTokenizer(path, context).info; // a name may end like that, too
  } catch (error) {
    if (!(error instanceof TokenizerNotFoundError)) throw error;
    return statusOf(knownTokenizer(name, context));
  }
}

function statusOf({ info, added }: KnownTokenizer): TokenizerStatus {
  const { id, name, status } = info;
  if (status === "completed")
    return {
      id,
      status,
      message: `Tokenizer '${name}' is loaded and ready`,
      ...(info.vocab_size !== null && { vocab_size: info.vocab_size }),
    };
  const failed = added?.state.status === "failed" ? added.state.message : undefined;
  return { id, status, message: failed ?? `Tokenizer '${name}' is being loaded` };
}

/** Forgets a tokenizer that was added. Throws TokenizerNotFoundError, and InvalidRequestError for a model's own. */
export async function removeTokenizer(
  name: string,
  context: ServerContext,
): Promise<{ success: true; message: string }> {
  const { info, added } = knownTokenizer(name, context);
  if (added === undefined)
    throw new InvalidRequestError(
      `'${info.name}' is the tokenizer of a model that is served: it stays as long as the model does`,
    );
  if (!(await context.control.removeTokenizer(info.id))) throw new TokenizerNotFoundError(name);
  return { success: true, message: `Tokenizer '${info.name}' is removed` };
}
