import { isObject } from "../image/tokenizer-json.ts";
import { jsonFile } from "../model-files.ts";
import { TokenizerError } from "../tokenizer.ts";

const WORD_END = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
const UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]";
const LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]";

/**
 * The pattern that Kimi's models (K2 to K3) cut texts with, for Oniguruma and for tiktoken's engine: o200k's with runs of Han characters
 * as pieces of their own, Han characters in no other word, and no slash behind punctuation. Fact of the models' own tokenizer code.
 *
 * That code also cuts a text before this pattern sees it: after every 400,000 characters, and runs of more than 25,000 characters that
 * are all white space or all not. Pieces across such a cut, in texts of that size only, differ from ours.
 */
export const KIMI_PATTERN = [
  "[\\p{Han}]+",
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+${WORD_END}`,
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*${WORD_END}`,
  "\\p{N}{1,3}",
  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*",
  "\\s*[\\r\\n]+",
  "\\s+(?!\\S)",
  "\\s+",
].join("|");

/** Model types whose tiktoken file is one of Kimi's. */
const MODEL_TYPES = ["kimi_k2", "kimi_k25", "kimi_k3"];
/** Ids that Kimi's tokenizers keep behind the ranks for special tokens: this many, or two more. */
const RESERVED = 256;

/** Is this a model of Kimi's? By the code that tokenizer_config.json names, else by the model type. */
export function isKimi(files: ReadonlyMap<string, Uint8Array>): boolean {
  const named = JSON.stringify(jsonFile(files, "tokenizer_config.json")?.["auto_map"] ?? null);
  if (/[".-]tokenization_kimi[".]/.test(named)) return true;
  return MODEL_TYPES.includes(String(jsonFile(files, "config.json")?.["model_type"]));
}

/**
 * End of the ids of a Kimi model with `ranks` ranks: 256 or 258 more, by the size of the vocabulary in config.json. Throws
 * `TokenizerError` if it is neither: the file is not the model's then.
 */
export function kimiEnd(files: ReadonlyMap<string, Uint8Array>, ranks: number, name: string): number {
  const config = jsonFile(files, "config.json") ?? {};
  const text = config["text_config"];
  const size = config["vocab_size"] ?? (isObject(text) ? text["vocab_size"] : undefined) ?? ranks + RESERVED;
  if (size !== ranks + RESERVED && size !== ranks + RESERVED + 2)
    throw new TokenizerError(`${name} has ${ranks} ranks, which does not fit the vocab_size ${size} of config.json`);
  return size;
}
