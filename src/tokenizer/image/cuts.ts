import type { KnownConfiguration } from "./recognise.ts";
import { textSearch } from "./text-search.ts";
import type { AddedTokenJson, TokenizerJson } from "./tokenizer-json.ts";

/**
 * Added tokens that a text may be cut behind: ids of the two parts, joined, are those of the whole. Not those that take the white
 * space after them or are looked for in normalized text, and none that lies inside another one, which a text could continue to.
 * No cut at all where the start of a text is treated apart.
 */
export function cutTokens(json: TokenizerJson, known: KnownConfiguration): readonly AddedTokenJson[] {
  if (known.prefix === "firstBare") return [];
  const tokens = json.added_tokens;
  const singleWords = tokens.some((t) => t.single_word);
  const { inside } = textSearch(tokens.map((t) => t.content));
  return tokens.filter(
    (token, i) =>
      !token.normalized &&
      !token.rstrip &&
      !token.single_word &&
      !(singleWords && endsInWord(token.content)) &&
      !inside.has(i),
  );
}

/** May the text end in a word character? Only ASCII is judged. */
const endsInWord = (text: string): boolean => !/[^A-Za-z0-9_\u0080-\u{10ffff}]$/u.test(text);
