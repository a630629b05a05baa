/** The prefix index as policies of one thread use it. */
import type { PrefixBoard } from "../threads/prefix-board.ts";
import type { ChainKeys, KeyRoom, RootKey } from "../threads/prefix-types.ts";
import { chainInto, chainRoot } from "./chain.ts";
import type { PrefixIndex } from "./policy.ts";

/** Roots that are remembered. Those with a salt are not: clients make them up. */
const MOST_ROOTS = 1024;
/** Blocks that room is made for at first. */
const FIRST_BLOCKS = 8192;

interface ReusedChain extends ChainKeys {
  keys: Int32Array;
  count: number;
  room: KeyRoom;
}

export function prefixIndex(board: PrefixBoard, thread: number): PrefixIndex {
  const reader = board.reader(thread);
  const roots = new Map<string, RootKey>();
  const chains = new Map<number, ReusedChain>();

  return {
    root(model, blockSize, lora, cacheSalt) {
      if (cacheSalt !== undefined) return chainRoot(model, blockSize, lora, cacheSalt);
      const name = `${blockSize} ${model.length} ${model}${lora === undefined ? "" : `+${lora}`}`;
      let root = roots.get(name);
      if (root === undefined) {
        root = chainRoot(model, blockSize, lora);
        if (roots.size === MOST_ROOTS) roots.clear();
        roots.set(name, root);
      }
      return root;
    },

    chain(root, ids, blockSize, media) {
      let chain = chains.get(blockSize);
      if (chain === undefined) {
        const room = board.keys.newRoom(FIRST_BLOCKS);
        chain = { keys: room.keys, count: 0, blockSize, room };
        chains.set(blockSize, chain);
      }
      const blocks = Math.floor(ids.length / blockSize);
      if (blocks * 2 > chain.keys.length) {
        chain.room = board.keys.newRoom(2 ** Math.ceil(Math.log2(blocks)));
        chain.keys = chain.room.keys;
      }
      chain.count = chainInto(board.keys, chain.room, root, ids, blockSize, media);
      return chain;
    },

    match: (chain, now) => reader.match(chain, now),
    promise: (chain, from, member, now, isRemote) => reader.promise(chain, from, member, now, isRemote),
  };
}
