/** Patterns that models cut texts with, as Oniguruma and tiktoken read them; facts of the formats that don't carry their own pattern. */

const CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const SPACES = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/** Qwen 2 to 3. */
export const QWEN2_PATTERN = `${CONTRACTION}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${SPACES}`;
/** cl100k: what tiktoken files are for where nothing says otherwise (Llama 3, GLM 4). */
export const CL100K_PATTERN = QWEN2_PATTERN.replace("|\\p{N}|", "|\\p{N}{1,3}|");

const UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
/** o200k: gpt-oss. */
export const O200K_PATTERN = [
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+${CONTRACTION}?`,
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*${CONTRACTION}?`,
  `\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${SPACES}`,
].join("|");
