import { MAX_TOKENS } from "../image/header.ts";
import { type AddedTokenJson, isObject } from "../image/tokenizer-json.ts";
import { TokenizerError } from "../tokenizer.ts";
import { rankCollector, rankedBytesJson } from "./ranked-bytes.ts";

/** What files without a list of special tokens (up to version v7) mean, by id. */
const OLD_SPECIAL_TOKENS =
  "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CALLS] [IMG] <pad> " +
  "[IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]";
const OLD_VERSION = /^v[1-7]$/;

/**
 * The tokenizer.json of Mistral's tekken.json. Ids below `default_num_special_tokens` are special tokens, the others ranks plus that
 * number; ranks beyond `default_vocab_size` are not used. Mistral's own library never finds special tokens in a text, but writes their
 * ids around texts; chat templates write them as text, so they are added tokens here (`specialAsText` keeps a user's text apart).
 */
export function tekkenJson(name: string, bytes: Uint8Array): Uint8Array {
  const json = parse(name, bytes);
  const config = json["config"];
  const { vocab, special_tokens: listed } = json;
  if (!isObject(config) || typeof config["pattern"] !== "string")
    throw new TokenizerError(`${name} has no config with a pattern`);
  if (!Array.isArray(vocab)) throw new TokenizerError(`${name} has no list vocab`);
  const version = config["version"];
  if (listed === undefined || listed === null) {
    if (typeof version !== "string" || !OLD_VERSION.test(version))
      throw new TokenizerError(`${name} has no special_tokens`);
  } else if (!Array.isArray(listed)) throw new TokenizerError(`special_tokens of ${name} is not a list`);
  const names = Array.isArray(listed) ? specialNames(name, listed) : OLD_SPECIAL_TOKENS.split(" ");
  const firstId = count(config["default_num_special_tokens"], names.length);
  if (firstId === undefined || firstId < names.length)
    throw new TokenizerError(`default_num_special_tokens of ${name} is not the number of its special tokens`);
  const size = count(config["default_vocab_size"], vocab.length + firstId);
  if (size === undefined || size < firstId + 256 || size > vocab.length + firstId)
    throw new TokenizerError(`default_vocab_size of ${name} does not fit its vocab of ${vocab.length}`);

  for (let id = names.length; id < firstId; id++) names.push(`<SPECIAL_${id}>`);
  if (new Set(names).size !== names.length) throw new TokenizerError(`${name} has a special token twice`);
  const collector = rankCollector(name);
  for (let rank = 0; rank < size - firstId; rank++) {
    const entry: unknown = vocab[rank];
    if (!isObject(entry) || entry["rank"] !== rank || typeof entry["token_bytes"] !== "string")
      throw new TokenizerError(`entry ${rank} of vocab of ${name} is not a token of that rank`);
    collector.add(entry["token_bytes"], rank, `entry ${rank} of vocab`);
  }
  const ranks = collector.ranks();
  const added = names.map((content, id): AddedTokenJson => {
    return { id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  });
  return rankedBytesJson({ name, ranks, firstId, pattern: config["pattern"], added });
}

function specialNames(name: string, listed: readonly unknown[]): string[] {
  const names: string[] = [];
  for (const entry of listed) {
    const rank = isObject(entry) ? count(entry["rank"], -1) : undefined;
    if (!isObject(entry) || rank === undefined || typeof entry["token_str"] !== "string" || entry["token_str"] === "")
      throw new TokenizerError(`special_tokens of ${name} is not a list of rank and token_str`);
    if (names[rank] !== undefined) throw new TokenizerError(`special_tokens of ${name} has the rank ${rank} twice`);
    names[rank] = entry["token_str"];
  }
  if (names.length !== listed.length) throw new TokenizerError(`the ranks in special_tokens of ${name} have gaps`);
  return names;
}

/** A whole number below the limit of ids; what is absent is `otherwise`. */
function count(value: unknown, otherwise: number): number | undefined {
  const number = value ?? otherwise;
  return Number.isInteger(number) && Number(number) >= 0 && Number(number) <= MAX_TOKENS ? Number(number) : undefined;
}

function parse(name: string, bytes: Uint8Array): Record<string, unknown> {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new TokenizerError(`${name} is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isObject(json)) throw new TokenizerError(`${name} is not a JSON object`);
  return json;
}
