/**
 * Caches with pages that are smaller than a block of the index: several pages make a block. Engines tell of pages one by one, each after
 * its parent; a page in the middle of a block is remembered only while it is the last that is known of a prompt, so that what follows
 * finds its place. What branches off in the middle of a block is left out: it is less than a block that goes unknown, and what follows.
 */
import type { KvStored } from "../../engines/kv-events.ts";
import { chainBlock } from "../../routing/chain.ts";
import type { RootKey } from "../../threads/prefix-types.ts";
import { wordsOf } from "./hash-words.ts";
import type { CacheMirror } from "./mirror.ts";

/** Ends of prompts that are remembered; the oldest give way. */
const MOST_ENDS = 65_536;
const SLICE = 256;

/** The end of what is known of a prompt, inside a block. */
interface OpenEnd {
  /** Key of the last whole block, or the root. */
  readonly key: RootKey;
  /** Ids behind that block. */
  readonly ids: readonly number[];
}

export class Pages {
  private readonly ends = new Map<bigint, OpenEnd>();
  private readonly key = new Int32Array(2);
  /** What was stored last. */
  private last: bigint | undefined;

  constructor(private readonly mirror: CacheMirror) {}

  /** What is stored from now on was told later: the ends so far were ends for a while, and others may go on there, too. */
  settle(): void {
    this.last = undefined;
  }

  clear(): void {
    this.ends.clear();
    this.last = undefined;
  }

  *stored(event: KvStored): Generator<void, void, void> {
    const { mirror } = this;
    const { hashes, tokenIds, blockSize: page, parent } = event;
    const size = mirror.blockSize!;
    let start = parent === undefined ? { key: mirror.root(event), ids: [] } : this.place(parent);
    if (start === undefined) {
      mirror.orphan(hashes.length);
      return;
    }
    if (parent !== undefined && parent === this.last) this.ends.delete(parent); // a prompt that goes on page by page
    this.last = hashes.at(-1);
    let [hi, lo] = start.key;
    const block = new Uint32Array(size);
    block.set(start.ids);
    const words = wordsOf(hashes);
    let filled = start.ids.length;
    for (let i = 0; i < hashes.length; i++) {
      block.set(tokenIds.subarray(i * page, (i + 1) * page), filled);
      filled += page;
      if (filled === size) {
        chainBlock(hi, lo, block, 0, size, this.key);
        [hi, lo] = [this.key[0]!, this.key[1]!];
        mirror.add(hi, lo, words[2 * i]!, words[2 * i + 1]!);
        filled = 0;
      }
      if (i % SLICE === SLICE - 1) yield;
    }
    if (filled === 0) return;
    start = { key: [hi, lo], ids: Array.from(block.subarray(0, filled)) };
    this.ends.set(hashes.at(-1)!, start);
    if (this.ends.size > MOST_ENDS) this.ends.delete(this.ends.keys().next().value!);
  }

  /** True if it was the open end of a prompt. */
  removed(hash: bigint): boolean {
    return this.ends.delete(hash);
  }

  private place(parent: bigint): OpenEnd | undefined {
    const key = this.mirror.keyOf(parent);
    return key === undefined ? this.ends.get(parent) : { key, ids: [] };
  }
}
