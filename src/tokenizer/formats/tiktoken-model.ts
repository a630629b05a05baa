import { jsonFile } from "../model-files.ts";
import { TokenizerError } from "../tokenizer.ts";
import { declaredTokens } from "./added-tokens.ts";
import { isKimi, KIMI_PATTERN, kimiEnd } from "./kimi.ts";
import { CL100K_PATTERN, O200K_PATTERN } from "./patterns.ts";
import { rankedBytesJson } from "./ranked-bytes.ts";
import { readTiktoken, tokensBehind } from "./tiktoken.ts";
import { GENERIC, tokenizerClass } from "./tokenizer-class.ts";

/** Tokenizer classes over a tiktoken file that cut texts with cl100k's pattern. Others have patterns in their code, which no file holds. */
const CL100K_CLASSES: readonly string[] = [
  GENERIC,
  "TikTokenTokenizer",
  "TiktokenTokenizer",
  "ChatGLM4Tokenizer",
  "LlamaTokenizer",
];

/**
 * The tokenizer.json of a model with a tiktoken file. Special tokens are those in `added_tokens_decoder` of tokenizer_config.json; ids
 * between them get names, as transformers gives them. Throws `TokenizerError` naming file and part.
 */
export function tiktokenJson(files: ReadonlyMap<string, Uint8Array>, name: string, bytes: Uint8Array): Uint8Array {
  const ranks = readTiktoken(name, bytes);
  const declared = declaredTokens(files);
  if (!declared)
    throw new TokenizerError(
      `${name} is a tiktoken file, whose special tokens must stand in added_tokens_decoder of tokenizer_config.json`,
    );
  let first = 0;
  for (const rank of ranks.values()) first = rank + 1;
  const kimi = isKimi(files);
  const pattern = kimi ? KIMI_PATTERN : patternOf(files, name);
  const added = tokensBehind(first, kimi ? kimiEnd(files, first, name) : first, declared, name);
  return rankedBytesJson({ name, ranks, firstId: 0, pattern, added });
}

function patternOf(files: ReadonlyMap<string, Uint8Array>, name: string): string {
  if (name.startsWith("o200k") || jsonFile(files, "config.json")?.["model_type"] === "gpt_oss") return O200K_PATTERN;
  const known = tokenizerClass(files);
  if (CL100K_CLASSES.includes(known) && !/^(?:[pr]50k|gpt2|qwen)/.test(name)) return CL100K_PATTERN;
  throw new TokenizerError(`the pattern of ${name}, a tiktoken file of the class ${known}, is not known`);
}
