/** Added tokens: found in a text before the model sees it. */
import { textSearch } from "../image/text-search.ts";
import type { AddedTokenJson } from "../image/tokenizer-json.ts";
import { TokenizerError } from "../tokenizer.ts";
import { Is, signatures } from "./characters.ts";
import type { Trie } from "./trie.ts";

export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** What is looked for, and what the token decodes to: the content, or its normalized form. */
  readonly text: string;
  readonly normalized: boolean;
  readonly special: boolean;
  readonly singleWord: boolean;
  readonly lstrip: boolean;
  readonly rstrip: boolean;
}

export interface AddedTokens {
  /** By id: a later token of an id replaces an earlier one. */
  readonly tokens: readonly AddedToken[];
  /** Id by content. */
  readonly ids: readonly (readonly [content: string, id: number])[];
  /** Contents of special tokens: whatever decodes to one of them is left out with them. */
  readonly specials: readonly string[];
}

/**
 * Gives added tokens their ids as the Rust library does on loading: a token of the vocabulary keeps its id, the others are numbered
 * from the size of the vocabulary on; what the file says about ids does not count. `idOf`: id in the vocabulary, -1 if none.
 */
export function resolveAdded(
  list: readonly AddedTokenJson[],
  vocabularySize: number,
  idOf: (text: string) => number,
  normalize: (text: string) => string,
): AddedTokens {
  const ids = new Map<string, number>();
  const byId = new Map<number, AddedToken>();
  const forms = new Map<number, string>();
  const specials = new Set<string>();
  let next = vocabularySize;
  for (const json of list) {
    if (json.content === "") continue;
    const known = ids.get(json.content);
    const inVocabulary = known === undefined ? idOf(json.content) : -1;
    const id = known ?? (inVocabulary >= 0 ? inVocabulary : next++);
    const normalized = json.normalized ?? false;
    if (normalized) {
      const form = normalize(json.content);
      if (form !== json.content) forms.set(id, form);
    }
    ids.set(json.content, id);
    if (json.special) specials.add(json.content);
    byId.set(id, {
      id,
      content: json.content,
      text: json.content,
      normalized,
      special: json.special ?? false,
      singleWord: json.single_word ?? false,
      lstrip: json.lstrip ?? false,
      rstrip: json.rstrip ?? false,
    });
  }
  const tokens = [...byId.values()].map((token) => ({ ...token, text: forms.get(token.id) ?? token.content }));
  return { tokens, ids: [...ids], specials: [...specials] };
}

/**
 * What is looked for in raw text, or in normalized text. Throws `TokenizerError` for tokens that can't be told apart: the library takes
 * one of them at random.
 */
export function patternsOf(tokens: readonly AddedToken[], normalized: boolean): Map<string, number> {
  const out = new Map<string, number>();
  for (const [index, token] of tokens.entries()) {
    if (token.normalized !== normalized) continue;
    const wanted = normalized ? token.text : token.content;
    if (wanted === "" || out.has(wanted)) {
      const what = wanted === "" ? "normalizes to nothing" : "normalizes to the same as another one";
      throw new TokenizerError(`the added token ${JSON.stringify(token.content)} of tokenizer.json ${what}`);
    }
    out.set(wanted, index);
  }
  return out;
}

/** Calls `visit` for each part of a text in order: `token` is undefined for what is no added token. */
export type AddedSplitter = (
  text: string,
  specialAsText: boolean,
  visit: (from: number, to: number, token: AddedToken | undefined) => void,
) => void;

/** The longest of the patterns that begin first in `text` at or after `at`: its value and place, or undefined. */
type Finder = (
  text: string,
  at: number,
) => { readonly index: number; readonly from: number; readonly to: number } | undefined;

/** UTF-16 units above which a pattern is long: going along it anew from each place of a text takes too long. */
const LONG = 256;
/** Units of all patterns above which the tables for long ones would take too much memory. */
const MOST = 1 << 23;

/** Looks for tokens by the trie of their texts, whose values are places in `tokens`. */
export function addedFinder(trie: Trie, tokens: readonly AddedToken[], normalized: boolean): Finder {
  const walk: Finder = (text, at) => alongTrie(trie, text, at);
  const isLong = (token: AddedToken): boolean => (normalized ? token.text : token.content).length > LONG;
  if (!tokens.some((token) => token.normalized === normalized && isLong(token))) return walk;
  const patterns = patternsOf(tokens, normalized);
  const texts = [...patterns.keys()];
  if (texts.reduce((sum, text) => sum + text.length, 0) > MOST) return walk;
  const places = [...patterns.values()];
  const search = textSearch(texts);
  return (text, at) => {
    const found = search.next(text, at);
    return found && { ...found, index: places[found.index]! };
  };
}

function alongTrie(trie: Trie, text: string, start: number): ReturnType<Finder> {
  for (let from = start; from < text.length; from++) {
    let node = trie.step(0, text.charCodeAt(from));
    let index = -1;
    let to = from;
    for (let i = from + 1; node !== 0; i++) {
      if (trie.value(node) >= 0) {
        index = trie.value(node);
        to = i;
      }
      if (i >= text.length) break;
      node = trie.step(node, text.charCodeAt(i));
    }
    if (index >= 0) return { index, from, to };
  }
  return undefined;
}

/** Cuts texts at what the finder finds: places in `tokens`. */
export function addedSplitter(
  find: Finder,
  tokens: readonly AddedToken[],
  isSpecial: (content: string) => boolean,
): AddedSplitter {
  const signature = signatures();
  const has = (code: number | undefined, bit: number): boolean => code !== undefined && (signature(code) & bit) !== 0;
  const before = (text: string, at: number): number | undefined => {
    if (at === 0) return undefined;
    const low = text.charCodeAt(at - 1);
    return (low & 0xfc00) === 0xdc00 ? text.codePointAt(at - 2) : low;
  };
  return (text, specialAsText, visit) => {
    let done = 0;
    for (let found = find(text, 0); found; found = find(text, found.to)) {
      const { from, to: end } = found;
      const token = tokens[found.index]!;
      if (specialAsText && isSpecial(token.content)) continue;
      if (token.singleWord && (has(before(text, from), Is.regexWord) || has(text.codePointAt(end), Is.regexWord)))
        continue;
      let start = from;
      let stop = end;
      // white space is in the basic plane
      if (token.lstrip) {
        while (start > 0 && has(text.charCodeAt(start - 1), Is.regexSpace)) start--;
        start = Math.max(start, done);
      }
      if (token.rstrip) while (stop < text.length && has(text.charCodeAt(stop), Is.regexSpace)) stop++;
      if (done < start) visit(done, start, undefined);
      visit(start, stop, token);
      done = stop;
    }
    if (done !== text.length) visit(done, text.length, undefined);
  };
}
