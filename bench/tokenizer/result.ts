import type { Kind } from "./prompts.ts";

/** What a contestant's process prints, as one line of JSON. */
export interface ChildResult {
  readonly version: string;
  readonly load_ms: number;
  /** The first prompt of the process, right after loading. */
  readonly first_ms: number;
  /** Milliseconds by measured prompt. */
  readonly ms: Readonly<Record<Kind, readonly number[]>>;
  /** The same without handing out the ids, where that can be told apart (Python lists). */
  readonly bare_ms?: Readonly<Record<Kind, readonly number[]>>;
  /** Checksum of all ids of the measured prompts. */
  readonly sum: Readonly<Record<Kind, number>>;
  /** Bytes that all threads share, and that one thread adds; ours only. */
  readonly memory?: { readonly shared: number; readonly thread: number };
}

/** Passes over the prompts that warm up, before those of the same kind are measured. */
export const WARM_PASSES = 4;

/** Checksum of ids, the same in all contestants. */
export function checksum(sum: number, ids: ArrayLike<number>): number {
  for (let i = 0; i < ids.length; i++) sum = (sum + ((i % 997) + 1) * ids[i]!) % 2 ** 45;
  return sum;
}
