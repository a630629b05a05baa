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
