/** Pre-tokenizers that the kernel has scanners for, by their patterns. */
import { KIMI_PATTERN } from "../formats/kimi.ts";
import type { FamilyName } from "./header.ts";
import { isObject } from "./tokenizer-json.ts";

/** How the kernel cuts text into pieces. */
export interface KnownSplit {
  readonly family: FamilyName;
  /** Digits per piece at most; 0: any number. */
  readonly maxDigits: number;
  /** Are 's, 't, 're and the like cut off words, or kept with them? */
  readonly contractions: boolean;
  /** Do combining marks count as letters? */
  readonly marks: boolean;
  /** Are runs of Han characters pieces of their own? */
  readonly han: boolean;
  /** What may end a run of punctuation: nothing, newlines, newlines and slashes. */
  readonly tail: 0 | 1 | 2;
}

const CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const SPACES = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const cl100k = (letter: string, digits: string, other: string): string =>
  `${CONTRACTION}|[^\\r\\n\\p{L}\\p{N}]?${letter}+|${digits}| ?${other}+[\\r\\n]*|${SPACES}`;
/** cl100k as OpenAI writes it: possessive, with one newline after the spaces, which are greedy. It matches the same. */
const possessive = (digits: string): string =>
  `'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+`;
const OTHER = "[^\\s\\p{L}\\p{N}]";
const UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
const o200k = (suffix: string, digits: string): string =>
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+${suffix}|[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*${suffix}|` +
  `${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${SPACES}`;
const DEEPSEEK = [
  "\\p{N}{1,3}",
  "[一-龥\u3040-ゟ゠-ヿ]+",
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];
const SEED = `${CONTRACTION}|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+`;

const FAMILIES = {
  cl100k: { family: "cl100k", maxDigits: 3, contractions: true, marks: false, han: false, tail: 1 },
  o200k: { family: "o200k", maxDigits: 3, contractions: true, marks: false, han: false, tail: 2 },
  deepseek: { family: "deepseek", maxDigits: 3, contractions: false, marks: false, han: false, tail: 1 },
  gpt2: { family: "gpt2", maxDigits: 0, contractions: true, marks: false, han: false, tail: 0 },
} as const satisfies Record<string, KnownSplit>;

/** By the patterns of the pre-tokenizer's splits, in a row. */
const SPLITS: readonly (readonly [patterns: readonly string[], split: KnownSplit])[] = [
  // Llama 3, GLM 4, OLMo 2, Phi 4, Falcon 3, SmolLM 3
  [[cl100k("\\p{L}", "\\p{N}{1,3}", OTHER)], FAMILIES.cl100k],
  [[possessive("\\p{N}{1,3}")], FAMILIES.cl100k],
  // Qwen 2 to 3, Hunyuan, Grok 2
  [[cl100k("\\p{L}", "\\p{N}", OTHER)], { ...FAMILIES.cl100k, maxDigits: 1 }],
  // Ling
  [[possessive("\\p{N}")], { ...FAMILIES.cl100k, maxDigits: 1 }],
  // Qwen 3.5
  [[cl100k("[\\p{L}\\p{M}]", "\\p{N}", "[^\\s\\p{L}\\p{M}\\p{N}]")], { ...FAMILIES.cl100k, maxDigits: 1, marks: true }],
  // Seed
  [[SEED], { ...FAMILIES.cl100k, maxDigits: 1, tail: 0 }],
  // gpt-oss, gpt-4o, Llama 4, MiniMax
  [[o200k(`${CONTRACTION}?`, "\\p{N}{1,3}")], FAMILIES.o200k],
  // Mistral's Tekken, Nemotron
  [[o200k("", "\\p{N}")], { ...FAMILIES.o200k, maxDigits: 1, contractions: false }],
  // Kimi
  [[KIMI_PATTERN], { ...FAMILIES.o200k, han: true, tail: 1 }],
  // DeepSeek V3, Hunyuan's dense models
  [DEEPSEEK, FAMILIES.deepseek],
];

const SINGLE_DIGITS = { type: "Digits", individual_digits: true };

/** The scanner of a byte-level pre-tokenizer (the JSON value), if the kernel has it. */
export function knownSplit(pre: unknown): KnownSplit | undefined {
  const steps = isObject(pre) && pre["type"] === "Sequence" ? pre["pretokenizers"] : [pre];
  if (!Array.isArray(steps)) return undefined;
  const last: unknown = steps.at(-1);
  if (!isObject(last) || last["type"] !== "ByteLevel" || last["add_prefix_space"] !== false) return undefined;
  if (last["use_regex"] !== false) {
    // GPT-2's own pattern, perhaps with digits taken out before
    if (steps.length === 1) return FAMILIES.gpt2;
    const digits = steps.length === 2 && Bun.deepEquals(steps[0], SINGLE_DIGITS);
    return digits ? { ...FAMILIES.gpt2, maxDigits: 1 } : undefined;
  }
  const patterns = steps.slice(0, -1).map(splitPattern);
  return SPLITS.find(([known]) => Bun.deepEquals(known, patterns))?.[1];
}

/** The regular expression of a Split that keeps every piece, else undefined. The patterns leave no text between matches. */
function splitPattern(step: unknown): string | undefined {
  if (!isObject(step) || step["type"] !== "Split" || !isObject(step["pattern"])) return undefined;
  const isolated = step["behavior"] === "Isolated" && !step["invert"];
  const matches = step["behavior"] === "Removed" && step["invert"] === true;
  const regex = step["pattern"]["Regex"];
  return (isolated || matches) && typeof regex === "string" ? regex : undefined;
}
