import { TokenizerError } from "../tokenizer.ts";

/** The parts of a tokenizer.json that decide ids; what is `unknown` is compared with known configurations as a whole. */
export interface TokenizerJson {
  readonly model: {
    readonly type?: string;
    readonly vocab: Readonly<Record<string, number>>;
    readonly merges: readonly (string | readonly [string, string])[];
    readonly ignore_merges?: boolean;
    readonly byte_fallback?: boolean;
    readonly dropout?: number | null;
    readonly continuing_subword_prefix?: string | null;
    readonly end_of_word_suffix?: string | null;
  };
  readonly added_tokens: readonly AddedTokenJson[];
  readonly normalizer?: unknown;
  readonly pre_tokenizer?: unknown;
  readonly decoder?: unknown;
}

export interface AddedTokenJson {
  readonly id: number;
  readonly content: string;
  readonly special?: boolean;
  readonly normalized?: boolean;
  readonly single_word?: boolean;
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
}

/** Parses tokenizer.json far enough to look at it. Throws `TokenizerError` when it is no such file. */
export function parseTokenizerJson(bytes: Uint8Array): TokenizerJson {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new TokenizerError(`tokenizer.json is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isObject(json) || !isObject(json["model"])) throw new TokenizerError("tokenizer.json has no model");
  const { added_tokens: added } = json;
  if (added !== undefined && added !== null && !isAddedTokens(added)) {
    throw new TokenizerError("added_tokens of tokenizer.json is not a list of tokens");
  }
  return { ...json, added_tokens: added ?? [] } as unknown as TokenizerJson;
}

export const isObject = (x: unknown): x is Record<string, unknown> =>
  typeof x === "object" && x !== null && !Array.isArray(x);

const isAddedTokens = (x: unknown): x is AddedTokenJson[] =>
  Array.isArray(x) &&
  x.every((t) => isObject(t) && Number.isInteger(t["id"]) && Number(t["id"]) >= 0 && typeof t["content"] === "string");
