import { TokenizerError } from "../../tokenizer.ts";
import type { Ids } from "../ids.ts";
import type { Trie } from "../trie.ts";
import { byteIds, type Model, pushBytes, widthAt } from "./model.ts";

export interface UnigramOptions {
  readonly unkId: number | undefined;
  readonly byteFallback: boolean;
}

/** How much less likely than the rarest piece an unknown character is. */
const UNKNOWN_PENALTY = 10;

/** The most likely pieces, by Viterbi's algorithm; of equally likely ones those that were found first. */
export function unigram(trie: Trie, scores: Float64Array, { unkId, byteFallback }: UnigramOptions): Model {
  let least = Number.POSITIVE_INFINITY;
  for (const score of scores) if (score < least) least = score;
  const unknown = least - UNKNOWN_PENALTY;
  const bytes = byteFallback ? byteIds(trie) : undefined;
  // by end of a path: its score, where its last piece starts (-1: no path yet), the piece's id
  let best = new Float64Array(256);
  let starts = new Int32Array(256);
  let ids = new Int32Array(256);

  function search(text: string): void {
    const n = text.length;
    if (n >= starts.length) {
      best = new Float64Array(n * 2);
      starts = new Int32Array(n * 2);
      ids = new Int32Array(n * 2);
    }
    starts.fill(-1, 0, n + 1);
    best[0] = 0;
    for (let at = 0; at < n; ) {
      const here = best[at]!;
      const width = widthAt(text, at);
      let single = false;
      let node = 0;
      for (let end = at; end < n; ) {
        node = trie.step(node, text.charCodeAt(end++));
        if (node === 0) break;
        const id = trie.value(node);
        if (id < 0) continue;
        const score = scores[id]! + here;
        if (starts[end]! < 0 || score > best[end]!) {
          best[end] = score;
          starts[end] = at;
          ids[end] = id;
        }
        if (end - at === width) single = true;
      }
      if (!single) {
        const end = at + width;
        const score = unknown + here;
        if (starts[end]! < 0 || score > best[end]!) {
          if (unkId === undefined) throw missing();
          best[end] = score;
          starts[end] = at;
          ids[end] = unkId;
        }
      }
      at += width;
    }
  }

  /** A run of unknown characters is one token, if its text is not in the vocabulary after all. */
  function pushUnknown(text: string, out: Ids): void {
    const id = trie.find(text, 0, text.length);
    if (id >= 0) out.push(id);
    else if (!bytes || !pushBytes(text, bytes, out.push)) out.push(unkId!);
  }

  return (piece, out) => {
    search(piece);
    // backwards: ends of the pieces
    const path: number[] = [];
    for (let end = piece.length; end > 0; end = starts[end]!) path.push(end);
    for (let i = path.length - 1; i >= 0; i--) {
      const end = path[i]!;
      if (ids[end] !== unkId) {
        out.push(ids[end]!);
        continue;
      }
      let last = end;
      while (i > 0 && ids[path[i - 1]!] === unkId) last = path[--i]!;
      pushUnknown(piece.slice(starts[end]!, last), out);
    }
  };
}

const missing = (): TokenizerError =>
  new TokenizerError("the text has a character that the vocabulary does not know, and the model has no unknown token");
