/** What one cache tells of its blocks: they are written into the index, and found again by the hashes that the cache has for them. */
import type { PrefixMemory } from "./prefix-memory.ts";
import type { KeyRoom, KnownBlock, PrefixCache, RootKey } from "./prefix-types.ts";

/** The index that it tells. */
interface Teller {
  clear(member: number): void;
  forgetAll(): void;
}

export class TellingCache implements PrefixCache {
  readonly mostTold: number;
  private readonly room: KeyRoom;
  private readonly hashes: Int32Array;
  private readonly known: Uint8Array;
  private cache: number;

  constructor(
    private readonly board: PrefixMemory,
    readonly member: number,
    private readonly owner: number,
    private readonly index: Teller,
  ) {
    const { kernel, memory } = board;
    this.mostTold = kernel.MOST_TOLD.value;
    const at = board.at("keysAt");
    this.room = { memory, at, keys: board.words(at, this.mostTold * 2) };
    this.hashes = board.words(board.at("hashesAt"), this.mostTold * 2);
    this.known = new Uint8Array(memory.buffer, board.at("knownAt"), this.mostTold);
    this.cache = this.open();
  }

  get keys(): Int32Array {
    return this.room.keys;
  }

  hash(parent: RootKey, ids: Uint32Array, start: number, count: number, size: number, to = 0): void {
    this.board.hash(ids, start, count, size, parent[0], parent[1], this.room, to);
  }

  stored(count: number, parent: number, hashes?: Int32Array, from = 0): number {
    const { board, member, owner, cache, room } = this;
    this.index.forgetAll();
    if (hashes === undefined) return board.kernel.tell(room.at, count, parent, member, owner, 0, 0);
    this.take(hashes, from, count);
    return board.kernel.tell(room.at, count, parent, member, owner, cache, this.hashes.byteOffset);
  }

  removed(count: number, hashes: Int32Array, from = 0): Uint8Array {
    const { member, owner, cache, known } = this;
    this.index.forgetAll();
    this.take(hashes, from, count);
    this.board.kernel.remove(this.hashes.byteOffset, count, member, owner, cache, known.byteOffset);
    return known;
  }

  find(low: number, high: number): KnownBlock | undefined {
    const { kernel } = this.board;
    const position = kernel.positionOfHash(this.cache, low, high);
    return position < 0 ? undefined : { position, key: [kernel.keyLow(position), kernel.keyHigh(position)] };
  }

  isThere({ position, key }: KnownBlock): boolean {
    const { kernel } = this.board;
    return position < 0 || (kernel.keyLow(position) === key[0] && kernel.keyHigh(position) === key[1]);
  }

  clear(): void {
    this.index.clear(this.member);
    this.close();
    this.cache = this.open();
  }

  close(): void {
    this.board.kernel.closeCache(this.cache);
  }

  private open(): number {
    const cache = this.board.kernel.openCache();
    if (cache < 0) throw new RangeError("too many caches");
    return cache;
  }

  private take(hashes: Int32Array, from: number, count: number): void {
    this.hashes.set(hashes.length === count * 2 ? hashes : hashes.subarray(from * 2, (from + count) * 2));
  }
}
