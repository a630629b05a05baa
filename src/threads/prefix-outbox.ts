/** What threads have promised, for other gateways: a ring each, which that thread alone writes and control alone reads. */
import { type PrefixCells, Ring } from "./prefix-layout.ts";
import type { ChainKeys } from "./prefix-types.ts";

/** Cells of a record: [member, block of the chain, blocks], then their keys. */
const HEAD = 3;

/** Adds a record; none where control has not read enough of the others. */
export function put(board: PrefixCells, thread: number, chain: ChainKeys, from: number, member: number): void {
  const ring = board.ring(thread);
  const blocks = chain.count - from;
  const size = HEAD + blocks * 2;
  const written = board.load(ring + Ring.written);
  if (((written - board.load(ring + Ring.read)) | 0) + size > Ring.CELLS) return;
  const write = (i: number, value: number) => {
    board.cells[ring + Ring.records + ((written + i) & (Ring.CELLS - 1))] = value;
  };
  write(0, member);
  write(1, from);
  write(2, blocks);
  for (let i = 0; i < blocks * 2; i++) write(HEAD + i, chain.keys[from * 2 + i]!);
  board.store(ring + Ring.written, (written + size) | 0);
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
