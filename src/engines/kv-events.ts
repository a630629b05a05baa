/** What engines tell of their prefix caches, whatever the dialect and the wire. */
import type { RankLoad } from "./admin.ts";

/** Hashes of 64 bits, two words each, the lower first. Bigints, and arrays that share their memory, cost more than all else of a batch. */
export type HashWords = Int32Array;

/** How many they are. */
export const hashCount = (hashes: HashWords): number => hashes.length >>> 1;

/** Blocks came into the cache, each the child of the one before. */
export interface KvStored {
  readonly kind: "stored";
  /** Hash of the block before the first, in the engine's own terms; undefined: the first begins a prompt. */
  readonly parent: HashWords | undefined;
  readonly hashes: HashWords;
  /** Those of all blocks, one after another. */
  readonly tokenIds: Uint32Array;
  /** Tokens of a block. */
  readonly blockSize: number;
  readonly lora?: string | undefined;
  readonly cacheSalt?: string | undefined;
  /** By block: identifiers of the media in it. Absent: none. */
  readonly media?: readonly (readonly string[] | undefined)[] | undefined;
  /** They are in the engine's own device memory: what lies in slower tiers or elsewhere does not count. */
  readonly isLocalDevice: boolean;
}

export interface KvRemoved {
  readonly kind: "removed";
  readonly hashes: HashWords;
  readonly isLocalDevice: boolean;
}

export type KvEvent = KvStored | KvRemoved | { readonly kind: "cleared" };

export interface KvSnapshot {
  readonly index: number;
  readonly count: number;
  /** Who tells of it did not hear all that came before: there may be more. */
  readonly isPartial?: boolean;
}

export interface KvBatch {
  readonly sequence: number;
  /** Data-parallel rank. */
  readonly rank: number;
  readonly events: readonly KvEvent[];
  /** A piece of what the cache holds in all. */
  readonly snapshot?: KvSnapshot | undefined;
  readonly load?: RankLoad | undefined;
  /** It brings a load and nothing else, under the number of the batch before. */
  readonly isLoadOnly: boolean;
}

/** Why no more events come: never offered, connection lost, or the engine no longer has those that were asked for. */
export type KvEnd = "unimplemented" | "lost" | "gap";

export interface KvSubscription {
  /** Nothing comes after it, not even the end. */
  close(): void;
  /** Stops reading, so that the engine must wait; a few batches may still come. */
  pause(): void;
  resume(): void;
}

export interface KvSource {
  /** `onEnd` comes at most once, and nothing after it. `message` is for the log. */
  subscribe(onBatch: (batch: KvBatch) => void, onEnd: (why: KvEnd, message: string) => void): KvSubscription;
}
