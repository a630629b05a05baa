import { TokenizerError } from "../../tokenizer.ts";
import type { Trie } from "../trie.ts";
import { type Model, widthAt } from "./model.ts";

const missing = (name: string): TokenizerError =>
  new TokenizerError(`the text has a word that the vocabulary does not know, nor does it know ${JSON.stringify(name)}`);

/** Whole words. */
export function wordLevel(trie: Trie, unknown: string): Model {
  const unk = trie.find(unknown, 0, unknown.length);
  return (piece, out) => {
    const id = trie.find(piece, 0, piece.length);
    if (id < 0 && unk < 0) throw missing(unknown);
    out.push(id < 0 ? unk : id);
  };
}

export interface WordPieceOptions {
  readonly unknown: string;
  /** What stands before pieces that go on a word. */
  readonly prefix: string;
  /** Longer words, in characters, are unknown. */
  readonly longest: number;
}

/** The longest piece at every place of a word; a word with a place that has none is unknown as a whole. */
export function wordPiece(trie: Trie, { unknown, prefix, longest }: WordPieceOptions): Model {
  const unk = trie.find(unknown, 0, unknown.length);
  let inner = 0;
  let known = true; // does the trie have pieces with the prefix?
  for (let i = 0; i < prefix.length && known; i++) {
    inner = trie.step(inner, prefix.charCodeAt(i));
    known = inner !== 0;
  }
  const found: number[] = [];

  /** Fills `found`; false if the word is unknown. */
  function split(word: string): boolean {
    found.length = 0;
    for (let at = 0; at < word.length; ) {
      if (at > 0 && !known) return false;
      let node = at === 0 ? 0 : inner;
      let id = -1;
      let end = at;
      for (let i = at; i < word.length; ) {
        node = trie.step(node, word.charCodeAt(i++));
        if (node === 0) break;
        if (trie.value(node) >= 0) {
          id = trie.value(node);
          end = i;
        }
      }
      if (id < 0) return false;
      found.push(id);
      at = end;
    }
    return true;
  }
  return (word, out) => {
    let characters = 0;
    for (let i = 0; i < word.length && characters <= longest; i += widthAt(word, i)) characters++;
    if (characters <= longest && split(word)) {
      for (const id of found) out.push(id);
      return;
    }
    if (unk < 0) throw missing(unknown);
    out.push(unk);
  };
}
