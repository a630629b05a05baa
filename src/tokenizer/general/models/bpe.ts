import { TokenizerError } from "../../tokenizer.ts";
import type { Trie } from "../trie.ts";
import { minHeap } from "./heap.ts";
import type { Merges } from "./merges.ts";
import { byteIds, type Model, pushBytes, widthAt } from "./model.ts";

export interface BpeOptions {
  readonly unknown: string | undefined;
  readonly fuseUnknown: boolean;
  readonly byteFallback: boolean;
  readonly prefix: string;
  readonly suffix: string;
  readonly ignoreMerges: boolean;
}

/** Byte pair encoding over characters; those that are in no vocabulary become bytes, the unknown token, or nothing. */
export function bpe(trie: Trie, merges: Merges, options: BpeOptions): Model {
  const { unknown, fuseUnknown, byteFallback, prefix, suffix, ignoreMerges } = options;
  const unk = unknown === undefined ? -1 : trie.find(unknown, 0, unknown.length);
  const bytes = byteFallback ? byteIds(trie) : undefined;
  // symbols of the word: id (-1: merged away), the one before and the one after
  let ids = new Int32Array(256);
  let before = new Int32Array(256);
  let after = new Int32Array(256);
  let count = 0;
  const heap = minHeap();

  function add(id: number): void {
    if (count === ids.length) {
      ids = doubled(ids);
      before = doubled(before);
      after = doubled(after);
    }
    ids[count] = id;
    before[count] = count - 1;
    after[count] = count + 1;
    count++;
  }

  function symbols(word: string): void {
    count = 0;
    let pending = false; // an unknown token that waits for its end
    for (let at = 0; at < word.length; ) {
      const width = widthAt(word, at);
      const last = at + width === word.length;
      let id: number;
      let text = "";
      if ((at === 0 || prefix === "") && (!last || suffix === "")) id = trie.find(word, at, at + width);
      else {
        text = `${at > 0 ? prefix : ""}${word.slice(at, at + width)}${last ? suffix : ""}`;
        id = trie.find(text, 0, text.length);
      }
      if (id >= 0) {
        if (pending) add(unk);
        pending = false;
        add(id);
      } else if (bytes && pushBytes(text || word.slice(at, at + width), bytes, add)) {
        // an unknown token before them still waits: the library puts it behind
      } else if (unknown !== undefined) {
        if (unk < 0) throw new TokenizerError(`the vocabulary does not know ${JSON.stringify(unknown)}`);
        if (pending && !fuseUnknown) add(unk);
        pending = true;
      }
      at += width;
    }
    if (pending) add(unk);
  }

  function consider(at: number): void {
    const next = after[at]!;
    const slot = merges.slot(ids[at]!, ids[next]!);
    if (slot >= 0) heap.push(merges.rank(slot), at, merges.result(slot));
  }

  function merge(): void {
    heap.clear();
    for (let i = 0; i + 1 < count; i++) consider(i);
    while (heap.pop()) {
      const at = heap.position();
      const next = after[at]!;
      if (ids[at]! < 0 || next >= count) continue;
      // the pair may be another one by now
      const slot = merges.slot(ids[at]!, ids[next]!);
      if (slot < 0 || merges.result(slot) !== heap.result()) continue;
      ids[at] = heap.result();
      ids[next] = -1;
      const beyond = after[next]!;
      after[at] = beyond;
      if (beyond < count) before[beyond] = at;
      if (before[at]! >= 0) consider(before[at]!);
      if (beyond < count) consider(at);
    }
  }

  return (word, out) => {
    if (ignoreMerges) {
      const id = trie.find(word, 0, word.length);
      if (id >= 0) return out.push(id);
    }
    symbols(word);
    if (count > 1) merge();
    for (let i = 0; i < count; i++) if (ids[i]! >= 0) out.push(ids[i]!);
  };
}

function doubled(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const out = new Int32Array(array.length * 2);
  out.set(array);
  return out;
}
