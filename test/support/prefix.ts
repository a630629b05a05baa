/** The prefix index as tests fill it: keys as prompts have them, and caches that tell of their blocks. */
import type { MediaSpan } from "../../src/routing/ask.ts";
import { chainInto } from "../../src/routing/chain.ts";
import { PrefixBoard } from "../../src/threads/prefix-board.ts";
import type { ChainKeys, PrefixCache, PrefixWriter, RootKey } from "../../src/threads/prefix-types.ts";

const { keys: maker } = PrefixBoard.create(1, 1); // keys are the same everywhere
const ROOM = maker.newRoom(50_000);

/** The keys of all full blocks, in memory of their own. */
export function chainOf(root: RootKey, ids: Uint32Array, blockSize: number, media?: readonly MediaSpan[]): ChainKeys {
  const count = chainInto(maker, ROOM, root, ids, blockSize, media);
  return { keys: ROOM.keys.slice(0, 2 * count), count, blockSize };
}

/** Caches that tell the index of blocks, which they know by hashes that are the keys. */
export class TestCaches {
  private readonly caches = new Map<number, PrefixCache>();

  constructor(private readonly writer: PrefixWriter) {}

  /** It holds the blocks from one to another, the one before which it holds already. Gives the number behind the last that was written. */
  tell({ keys, count }: Pick<ChainKeys, "keys" | "count">, member: number, from = 0, to = count): number {
    const cache = this.of(member);
    const parent = from === 0 ? -1 : cache.find(keys[from * 2 - 2]!, keys[from * 2 - 1]!)?.position;
    if (parent === undefined) return from;
    let position = parent;
    for (let at = from; at < to; at += cache.mostTold) {
      const blocks = Math.min(cache.mostTold, to - at);
      cache.keys.set(keys.subarray(at * 2, (at + blocks) * 2));
      position = cache.stored(blocks, position, keys, at);
      if (position < 0) return at;
    }
    return to;
  }

  /** It holds a block no more, however often it told of it. False: it had not told of it. */
  untell({ keys }: Pick<ChainKeys, "keys">, member: number, block: number): boolean {
    let wasKnown = false;
    while (this.of(member).removed(1, keys, block)[0] === 1) wasKnown = true;
    return wasKnown;
  }

  clear(member: number): void {
    this.of(member).clear();
  }

  release(member: number): void {
    this.caches.get(member)?.close();
    this.caches.delete(member);
    this.writer.release(member);
  }

  of(member: number): PrefixCache {
    let cache = this.caches.get(member);
    if (cache === undefined) {
      cache = this.writer.cache(member);
      this.caches.set(member, cache);
    }
    return cache;
  }
}
