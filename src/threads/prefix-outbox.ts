/** What threads have promised, for other gateways: a ring each, which that thread alone writes and control alone reads. */
import { type PrefixCells, Ring } from "./prefix-layout.ts";
import type { ChainKeys } from "./prefix-types.ts";

/** Cells of a record: [member, block of the chain, blocks], then their keys. */
const HEAD = 3;

/** Blocks of a record at most: a long prompt makes several, of which the first fit in even where the last do not. */
const MOST_BLOCKS = 1024;

/** Adds what is promised of a chain from a block on; not what there is no room for, where control has not read enough. */
export function put(board: PrefixCells, thread: number, chain: ChainKeys, from: number, member: number): void {
  for (let block = from; block < chain.count; block += MOST_BLOCKS)
    if (!putRecord(board, thread, chain, block, Math.min(MOST_BLOCKS, chain.count - block), member)) return;
}

function putRecord(
  board: PrefixCells,
  thread: number,
  { keys }: ChainKeys,
  from: number,
  blocks: number,
  member: number,
): boolean {
  const ring = board.ring(thread);
  const size = HEAD + blocks * 2;
  const written = board.load(ring + Ring.written);
  if (((written - board.load(ring + Ring.read)) | 0) + size > Ring.CELLS) return false;
  const write = (i: number, value: number) => {
    board.cells[ring + Ring.records + ((written + i) & (Ring.CELLS - 1))] = value;
  };
  write(0, member);
  write(1, from);
  write(2, blocks);
  for (let i = 0; i < blocks * 2; i++) write(HEAD + i, keys[from * 2 + i]!);
  board.store(ring + Ring.written, (written + size) | 0);
  return true;
}

export function drain(
  board: PrefixCells,
  take: (member: number, keys: Int32Array, count: number, from: number) => void,
): void {
  for (let thread = 0; thread < board.threads; thread++) {
    const ring = board.ring(thread);
    const written = board.load(ring + Ring.written);
    for (let at = board.load(ring + Ring.read); at !== written; ) {
      const read = (i: number) => board.cells[ring + Ring.records + ((at + i) & (Ring.CELLS - 1))]!;
      const [member, from, count] = [read(0), read(1), read(2)];
      const keys = Int32Array.from({ length: count * 2 }, (_, i) => read(HEAD + i));
      at = (at + HEAD + count * 2) | 0;
      board.store(ring + Ring.read, at);
      take(member, keys, count, from);
    }
  }
}
