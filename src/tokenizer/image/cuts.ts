import type { KnownConfiguration } from "./recognise.ts";
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
  const inside = insideOthers(tokens.map((t) => t.content));
  return tokens.filter(
    (token) =>
      !token.normalized &&
      !token.rstrip &&
      !token.single_word &&
      !(singleWords && endsInWord(token.content)) &&
      !inside.has(token.content),
  );
}

/** Those of the texts that are part of another one. */
function insideOthers(texts: readonly string[]): ReadonlySet<string> {
  const all = new Set(texts);
  const inside = new Set<string>();
  for (const text of all) {
    for (let from = 0; from < text.length; from++) {
      for (let to = from + 1; to <= text.length; to++) {
        const part = text.slice(from, to);
        if (part.length < text.length && all.has(part)) inside.add(part);
      }
    }
  }
  return inside;
}

/** May the text end in a word character? Only ASCII is judged. */
const endsInWord = (text: string): boolean => !/[^A-Za-z0-9_\u0080-\u{10ffff}]$/u.test(text);
