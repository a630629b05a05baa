/** The prefix index as policies of one thread use it. */
import type { PrefixBoard } from "../threads/prefix-board.ts";
import type { ChainKeys, RootKey } from "../threads/prefix-types.ts";
import { chainInto, chainRoot } from "./chain.ts";
import type { PrefixIndex } from "./policy.ts";

/** Roots that are remembered. Those with a salt are not: clients make them up. */
const MOST_ROOTS = 1024;
/** Blocks that room is made for at first. */
const FIRST_BLOCKS = 1024;

interface ReusedChain extends ChainKeys {
  keys: Int32Array;
  count: number;
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
        chain = { keys: new Int32Array(FIRST_BLOCKS * 2), count: 0, blockSize };
        chains.set(blockSize, chain);
      }
      const cells = Math.floor(ids.length / blockSize) * 2;
      if (cells > chain.keys.length) chain.keys = new Int32Array(2 ** Math.ceil(Math.log2(cells)));
      chain.count = chainInto(chain.keys, root, ids, blockSize, media);
      return chain;
    },

    match: (chain, now) => reader.match(chain, now),
    promise: (chain, from, member, now, isRemote) => reader.promise(chain, from, member, now, isRemote),
  };
}
