/** The prefix index written plainly, and prompts to try it with. */
import type { ChainKeys } from "../../../src/threads/prefix-types.ts";
import { random } from "../generation/random.ts";

interface Block {
  readonly told: Set<number>;
  guessed: Set<number>;
  guessedAt: number;
}

/** Times are seconds. */
export class PrefixModel {
  private readonly blocks = new Map<string, Block>();
  private readonly senders = new Set<number>();

  tell(hi: number, lo: number, member: number): void {
    const block = this.block(hi, lo);
    block.told.add(member);
    block.guessed.delete(member);
  }

  untell(hi: number, lo: number, member: number): void {
    this.blocks.get(`${hi} ${lo}`)?.told.delete(member);
  }

  promise(chain: ChainKeys, from: number, member: number, now: number): void {
    for (let i = from; i < chain.count; i++) {
      const block = this.block(chain.keys[i * 2]!, chain.keys[i * 2 + 1]!);
      if (block.told.has(member)) continue;
      block.guessed = new Set([...block.guessed].filter((other) => this.isBelieved(block, other, now)));
      block.guessed.add(member);
      block.guessedAt = now;
    }
  }

  forget(member: number): void {
    for (const { told, guessed } of this.blocks.values()) {
      told.delete(member);
      guessed.delete(member);
    }
  }

  setExact(member: number, isExact: boolean): void {
    if (isExact) this.senders.add(member);
    else this.senders.delete(member);
  }

  hasTold(hi: number, lo: number, member: number): boolean {
    return this.blocks.get(`${hi} ${lo}`)?.told.has(member) === true;
  }

  holds(hi: number, lo: number, member: number, now: number): boolean {
    const block = this.blocks.get(`${hi} ${lo}`);
    return block !== undefined && (block.told.has(member) || this.isBelieved(block, member, now));
  }

  depth(chain: ChainKeys, member: number, now: number): number {
    let depth = 0;
    while (depth < chain.count && this.holds(chain.keys[depth * 2]!, chain.keys[depth * 2 + 1]!, member, now)) depth++;
    return depth;
  }

  private isBelieved(block: Block, member: number, now: number): boolean {
    return block.guessed.has(member) && now - block.guessedAt <= (this.senders.has(member) ? 10 : 1800);
  }

  private block(hi: number, lo: number): Block {
    const key = `${hi} ${lo}`;
    let block = this.blocks.get(key);
    if (block === undefined) {
      block = { told: new Set(), guessed: new Set(), guessedAt: 0 };
      this.blocks.set(key, block);
    }
    return block;
  }
}

/** Chains of different lengths up to `longest` that begin alike, in a tree: every one leaves an earlier one at some block. */
export function chains(count: number, longest: number, seed: number): ChainKeys[] {
  const { below } = random(seed);
  const word = () => below(2 ** 32) | 0;
  const made: ChainKeys[] = [];
  for (let i = 0; i < count; i++) {
    const blocks = 1 + below(longest);
    const keys = new Int32Array(blocks * 2).map(word);
    const other = made[below(made.length + 1)];
    if (other !== undefined) keys.set(other.keys.subarray(0, Math.min(blocks, below(other.count + 1)) * 2));
    made.push({ keys, count: blocks, blockSize: 16 });
  }
  return made;
}

/** One block of a chain as a chain. */
export function blockOf(chain: ChainKeys, block: number): ChainKeys {
  return { keys: chain.keys.slice(block * 2, block * 2 + 2), count: 1, blockSize: chain.blockSize };
}
