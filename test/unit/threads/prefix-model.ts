/** The prefix index written plainly, and prompts to try it with. */
import type { ChainKeys } from "../../../src/threads/prefix-types.ts";
import { random } from "../generation/random.ts";

interface Block {
  readonly told: Set<number>;
  guessed: Set<number>;
  /** The same, if all was renewed that may have been. */
  perhaps: Set<number>;
  guessedAt: number;
}

/** Blocks of which what is guessed may be renewed together. */
const GROUP = 10;
/** Seconds for which what is guessed is believed, and of members that send events. */
const [GUESS_S, PROMISE_S] = [1800, 10];

/** Times are seconds. */
export class PrefixModel {
  private readonly blocks = new Map<string, Block>();
  private readonly senders = new Set<number>();
  /** When something of a group of any chain was last guessed, or used. */
  private readonly groups: number[] = [];

  tell(chain: ChainKeys, i: number, member: number): void {
    const block = this.block(chain, i);
    block.told.add(member);
    block.guessed.delete(member);
    block.perhaps.delete(member);
  }

  untell(chain: ChainKeys, i: number, member: number): void {
    this.block(chain, i).told.delete(member);
  }

  promise(chain: ChainKeys, from: number, member: number, now: number): void {
    for (let i = from; i < chain.count; i++) {
      const block = this.block(chain, i);
      if (block.told.has(member)) continue;
      const believed = (set: Set<number>, since: number) =>
        new Set([...set].filter((other) => this.isBelieved(other, now - since)));
      block.guessed = believed(block.guessed, block.guessedAt).add(member);
      block.perhaps = believed(block.perhaps, this.renewedAt(block, i)).add(member);
      block.guessedAt = now;
    }
    for (let i = 0; i < chain.count; i++) this.groups[Math.floor(i / GROUP)] = now;
  }

  forget(member: number): void {
    for (const { told, guessed, perhaps } of this.blocks.values())
      for (const set of [told, guessed, perhaps]) set.delete(member);
  }

  setExact(member: number, isExact: boolean): void {
    if (isExact) this.senders.add(member);
    else this.senders.delete(member);
  }

  hasTold(chain: ChainKeys, i: number, member: number): boolean {
    return this.block(chain, i).told.has(member);
  }

  /** Blocks that it holds from the first on; `atMost`: if all was renewed that may have been. */
  depth(chain: ChainKeys, member: number, now: number, atMost = false): number {
    let depth = 0;
    while (depth < chain.count && this.holds(chain, depth, member, now, atMost)) depth++;
    return depth;
  }

  private holds(chain: ChainKeys, i: number, member: number, now: number, atMost: boolean): boolean {
    const block = this.block(chain, i);
    const since = atMost ? this.renewedAt(block, i) : block.guessedAt;
    const guessed = atMost ? block.perhaps : block.guessed;
    return block.told.has(member) || (guessed.has(member) && this.isBelieved(member, now - since));
  }

  private renewedAt({ guessedAt }: Block, i: number): number {
    return Math.max(guessedAt, this.groups[Math.floor(i / GROUP)] ?? 0);
  }

  private isBelieved(member: number, age: number): boolean {
    return age <= (this.senders.has(member) ? PROMISE_S : GUESS_S);
  }

  private block({ keys }: ChainKeys, i: number): Block {
    const key = `${keys[i * 2]} ${keys[i * 2 + 1]}`;
    let block = this.blocks.get(key);
    if (block === undefined) {
      block = { told: new Set(), guessed: new Set(), perhaps: new Set(), guessedAt: 0 };
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
