import { InvalidRequestError, OverloadedError, TokenizerNotFoundError } from "../../errors.ts";
import type { TokenizerEntry } from "../../fleet/snapshot.ts";
import type { NamedTokenizer } from "../../fleet/view.ts";
import type { ServerContext } from "../../server/context.ts";

/**
 * The tokenizer that a request names; without a name the only model's. Throws InvalidRequestError, ModelNotFoundError, and
 * OverloadedError for one that is still loading.
 */
export function requestedTokenizer(model: string | null | undefined, { fleet }: ServerContext): NamedTokenizer {
  const added = fleet.addedTokenizers().find(({ name, id }) => name === model || id === model);
  if (added?.state.status === "pending") throw new OverloadedError(`The tokenizer '${added.name}' is still loading`);
  if (added?.state.status === "failed")
    throw new InvalidRequestError(`The tokenizer '${added.name}' could not be loaded: ${added.state.message}`, {
      param: "model",
    });
  if (model) return fleet.tokenizer(model);
  const [only, another] = fleet.list();
  if (only === undefined || another !== undefined)
    throw new InvalidRequestError("Missing required parameter: 'model'", { param: "model" });
  return fleet.tokenizer(only.id);
}

/** A tokenizer as clients see it in lists. */
export interface TokenizerInfo {
  readonly id: string;
  readonly name: string;
  readonly source: string;
  readonly vocab_size: number | null;
  readonly status: "pending" | "completed" | "failed";
}

/** One tokenizer, and where it comes from: `added` is undefined for a model's own. */
export interface KnownTokenizer {
  readonly info: TokenizerInfo;
  readonly added: TokenizerEntry | undefined;
}

/** Those of the models, then those that were added. */
export function knownTokenizers({ fleet, config }: ServerContext): KnownTokenizer[] {
  const source = config.tokenizerPath ?? config.modelPath ?? "engine";
  const models = fleet.list().map(({ id }): KnownTokenizer => {
    const vocabSize = fleet.tokenizer(id).tokenizer.vocabSize;
    return { info: { id, name: id, source, vocab_size: vocabSize, status: "completed" }, added: undefined };
  });
  const added = fleet.addedTokenizers().map((entry): KnownTokenizer => {
    const { id, name, source: from, state } = entry;
    const ready = state.status === "ready";
    return {
      info: {
        id,
        name,
        source: from,
        vocab_size: state.status === "ready" ? state.vocabSize : null,
        status: ready ? "completed" : state.status,
      },
      added: entry,
    };
  });
  return [...models, ...added];
}

/** A tokenizer by its id or name, also one that is not ready. Throws TokenizerNotFoundError. */
export function knownTokenizer(name: string, context: ServerContext): KnownTokenizer {
  const all = knownTokenizers(context);
  const found = all.find(({ info }) => info.id === name) ?? all.find(({ info }) => info.name === name);
  if (found !== undefined) return found;
  const alias = context.fleet.list().find(({ aliases }) => aliases.includes(name));
  const model = alias && all.find(({ info, added }) => added === undefined && info.id === alias.id);
  if (model === undefined) throw new TokenizerNotFoundError(name);
  return model;
}
