/** What threads have promised, for other gateways: a ring each, which that thread alone writes and control alone reads. */
import type { ChainKeys } from "./prefix-types.ts";

/** Cells of a ring: [written, read], each of which has a cache line for itself, then records. */
const Ring = { written: 0, read: 16, records: 32, CELLS: 16_384 } as const;
export const RING_CELLS = Ring.records + Ring.CELLS;
export const RING_BYTES = RING_CELLS * 4;

/** Cells of a record: [member, block of the chain, blocks], then their keys. */
const HEAD = 3;

/** Blocks of a record at most: a long prompt makes several, of which the first fit in even where the last do not. Whole groups. */
const MOST_BLOCKS = 1000;

/** Adds what is promised of a chain from a block on; not what there is no room for, where control has not read enough. */
export function put(ring: Int32Array, chain: ChainKeys, from: number, member: number): void {
  for (let block = from; block < chain.count; block += MOST_BLOCKS)
    if (!putRecord(ring, chain, block, Math.min(MOST_BLOCKS, chain.count - block), member)) return;
}

function putRecord(ring: Int32Array, { keys }: ChainKeys, from: number, blocks: number, member: number): boolean {
  const size = HEAD + blocks * 2;
  const written = Atomics.load(ring, Ring.written);
  if (((written - Atomics.load(ring, Ring.read)) | 0) + size > Ring.CELLS) return false;
  const write = (i: number, value: number) => {
    ring[Ring.records + ((written + i) & (Ring.CELLS - 1))] = value;
  };
  write(0, member);
  write(1, from);
  write(2, blocks);
  for (let i = 0; i < blocks * 2; i++) write(HEAD + i, keys[from * 2 + i]!);
  Atomics.store(ring, Ring.written, (written + size) | 0);
  return true;
}

export function drain(
  ring: Int32Array,
  take: (member: number, keys: Int32Array, count: number, from: number) => void,
): void {
  const written = Atomics.load(ring, Ring.written);
  for (let at = Atomics.load(ring, Ring.read); at !== written; ) {
    const read = (i: number) => ring[Ring.records + ((at + i) & (Ring.CELLS - 1))]!;
    const [member, from, count] = [read(0), read(1), read(2)];
    const keys = Int32Array.from({ length: count * 2 }, (_, i) => read(HEAD + i));
    at = (at + HEAD + count * 2) | 0;
    Atomics.store(ring, Ring.read, at);
    take(member, keys, count, from);
  }
}
