/** What was found of a chain in the index, as the kernel left it. */
import type { PrefixMemory } from "./prefix-memory.ts";
import type { ChainKeys, PrefixMatch, PrefixSpan } from "./prefix-types.ts";

const TRIES = 3;

export class ChainMatch implements PrefixMatch {
  private readonly depths: Int32Array;
  private readonly exacts: Int32Array;
  private chain: ChainKeys = { keys: new Int32Array(0), count: 0, blockSize: 1 };
  private now = 0;

  constructor(private readonly board: PrefixMemory) {
    this.depths = board.depths;
    this.exacts = board.exacts;
  }

  /** Fills this with what is held of a chain at a time in milliseconds. */
  find(chain: ChainKeys, now: number): this {
    const { board } = this;
    this.chain = chain;
    this.now = now;
    board.kernel.match(board.place(chain), chain.count, Math.floor(now / 1000));
    return this;
  }

  depth(member: number): number {
    return this.depths[member]!;
  }

  isExact(member: number): boolean {
    return ((this.exacts[member >>> 5]! >>> (member & 31)) & 1) === 1;
  }

  spans(): readonly PrefixSpan[] {
    const { kernel } = this.board;
    for (let i = 0; i < TRIES; i++) {
      const spans: PrefixSpan[] = [];
      for (let span = 0; span < kernel.spans.value; span++)
        spans.push({ end: kernel.endOf(span), exact: this.members(span, true), guessed: this.members(span, false) });
      if (kernel.isCurrent() !== 0) return spans;
      this.find(this.chain, this.now);
    }
    return [];
  }

  private members(span: number, isExact: boolean): readonly number[] {
    const { kernel } = this.board;
    const members: number[] = [];
    for (let word = 0; word < kernel.wordsOfMembers(); word++) {
      const told = kernel.told(span, word);
      let bits = isExact ? told : kernel.guessed(span, word) & ~told;
      for (; bits !== 0; bits &= bits - 1) members.push(word * 32 + 31 - Math.clz32(bits & -bits));
    }
    return members;
  }
}
