import { type AddedTokenJson, isObject } from "../image/tokenizer-json.ts";
import { jsonFile } from "../model-files.ts";
import { TokenizerError } from "../tokenizer.ts";

/** A whole added token; `id` is -1 where no file gives one. */
export type AddedToken = Required<AddedTokenJson>;

/**
 * The tokens in `added_tokens_decoder` of tokenizer_config.json, by ascending id; undefined if there is none. `normalized` is by default
 * what `special` is not. Throws `TokenizerError` if they are not of that form.
 */
export function declaredTokens(files: ReadonlyMap<string, Uint8Array>): AddedToken[] | undefined {
  const declared = jsonFile(files, "tokenizer_config.json")?.["added_tokens_decoder"];
  if (declared === undefined) return undefined;
  const part = "added_tokens_decoder of tokenizer_config.json";
  if (!isObject(declared)) throw new TokenizerError(`${part} is not an object`);
  const tokens = Object.entries(declared).map(([key, value]) => {
    if (!/^\d{1,9}$/.test(key)) throw new TokenizerError(`${part} has the key ${JSON.stringify(key)}, which is no id`);
    return addedToken(value, Number(key), `the token ${key} in ${part}`);
  });
  return tokens.sort((a, b) => a.id - b.id);
}

/** Reads one token: a text, or an object with `content` and flags. `part` names it in messages. */
export function addedToken(value: unknown, id: number, part: string, special = false): AddedToken {
  const token = typeof value === "string" ? { content: value } : value;
  if (!isObject(token) || typeof token["content"] !== "string" || token["content"] === "")
    throw new TokenizerError(`${part} has no text`);
  const flag = (name: string, otherwise: boolean): boolean => {
    const given = token[name] ?? otherwise;
    if (typeof given !== "boolean") throw new TokenizerError(`${name} of ${part} is neither true nor false`);
    return given;
  };
  const isSpecial = flag("special", special);
  return {
    id,
    content: token["content"],
    single_word: flag("single_word", false),
    lstrip: flag("lstrip", false),
    rstrip: flag("rstrip", false),
    normalized: flag("normalized", !isSpecial),
    special: isSpecial,
  };
}
