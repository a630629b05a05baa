/**
 * Sets of members, each kept once: blocks name them by 16-bit ids. What a set contains is never changed, but that members who have left
 * are taken out of all. Everything here is called with the lock held.
 */
import { Facts, Header, MAX_MEMBERS, MEMBER_WORDS, type PrefixCells } from "./prefix-layout.ts";

/** What steps from set to set were made of late: most blocks of a prompt take the same one. */
const STEPS = 1024;
/** Few ids are left where it is less than this part of all; as many sets must be idle for it to be worth while to look for them. */
const FEW = 8;

export class PrefixSets {
  /** [step + 1, the set it leads to] each. */
  private readonly steps = new Int32Array(STEPS * 2);
  private version = 0;

  constructor(private readonly board: PrefixCells) {}

  has(set: number, member: number): boolean {
    return ((this.board.cells[this.board.bitsOf(set) + (member >>> 5)]! >>> (member & 31)) & 1) === 1;
  }

  /** Nobody is in it, or no longer. */
  isEmpty(set: number): boolean {
    return set === 0 || this.board.cells[this.board.factsOf(set) + Facts.size] === 0;
  }

  /** The set with a member besides; -1 where no more sets can be kept. */
  with(set: number, member: number): number {
    return this.has(set, member) ? set : this.step(set, member, true);
  }

  /** The set without a member; -1 where no more sets can be kept. */
  without(set: number, member: number): number {
    return this.has(set, member) ? this.step(set, member, false) : set;
  }

  /** The set without those that send events. */
  withoutSenders(set: number): number {
    const { board } = this;
    let left = set;
    for (let word = 0; word < board.words() && left > 0; word++) {
      let bits = board.cells[board.bitsOf(set) + word]! & board.load(board.exact + word);
      for (; bits !== 0 && left > 0; bits &= bits - 1) left = this.without(left, word * 32 + lowestBit(bits));
    }
    return left;
  }

  /** An entry will have it. */
  use(set: number): void {
    if (set === 0) return;
    const { cells } = this.board;
    if (cells[this.board.factsOf(set) + Facts.uses]!++ === 0) cells[Header.idleSets]!--;
  }

  /** An entry has it no more. */
  leave(set: number): void {
    if (set === 0) return;
    const { cells } = this.board;
    if (--cells[this.board.factsOf(set) + Facts.uses]! === 0) cells[Header.idleSets]!++;
  }

  /** Gives up the sets that no entry has where few ids are left. Not while sets are held that no entry has yet. */
  makeRoom(): void {
    const { cells, sets } = this.board;
    const left = sets - cells[Header.setsMade]! + cells[Header.freeSets]!;
    if (left < sets / FEW && cells[Header.idleSets]! > sets / FEW) this.giveUp();
  }

  /** Takes a member out of all sets. */
  remove(member: number): void {
    const { board } = this;
    const bit = 1 << (member & 31);
    const made = board.load(Header.setsMade);
    let removed = 0;
    for (let set = 1; set <= made; set++) {
      if (!this.has(set, member)) continue;
      Atomics.and(board.cells, board.bitsOf(set) + (member >>> 5), ~bit);
      board.cells[board.factsOf(set) + Facts.hash]! ^= HASHES[member]!;
      board.cells[board.factsOf(set) + Facts.size]!--;
      removed++;
    }
    if (removed > 0) this.rebuild();
  }

  private giveUp(): void {
    const { board } = this;
    const { cells } = board;
    const made = cells[Header.setsMade]!;
    let given = 0;
    for (let set = 1; set <= made; set++) {
      const facts = board.factsOf(set);
      if (cells[facts + Facts.uses] !== 0) continue;
      cells[facts + Facts.uses] = -1;
      cells[facts + Facts.next] = cells[Header.firstFree]!;
      cells[Header.firstFree] = set;
      given++;
    }
    cells[Header.freeSets]! += given;
    cells[Header.idleSets] = 0;
    this.rebuild();
  }

  private step(set: number, member: number, adds: boolean): number {
    const version = this.board.load(Header.version);
    if (version !== this.version) {
      this.steps.fill(0);
      this.version = version;
    }
    const step = (set * MAX_MEMBERS + member) * 2 + (adds ? 2 : 1);
    const place = (Math.imul(step, 0x9e3779b1) >>> 22) * 2;
    if (this.steps[place] === step) return this.steps[place + 1]!;
    const to = this.find(set, member, adds);
    if (to >= 0) {
      this.steps[place] = step;
      this.steps[place + 1] = to;
    }
    return to;
  }

  /** The set that differs from another by one member. */
  private find(from: number, member: number, adds: boolean): number {
    const { board } = this;
    const { found } = board;
    const size = board.cells[board.factsOf(from) + Facts.size]! + (adds ? 1 : -1);
    if (size === 0) return 0;
    const hash = board.cells[board.factsOf(from) + Facts.hash]! ^ HASHES[member]!;
    let place = placeOf(hash, found.length);
    for (let set = found[place]!; set !== 0; set = found[place]!) {
      if (board.cells[board.factsOf(set) + Facts.hash] === hash && this.differBy(from, set, member)) return set;
      place = (place + 1) & (found.length - 1);
    }
    const set = this.takeId();
    if (set < 0) return -1;
    const bits = board.bitsOf(set);
    board.cells.copyWithin(bits, board.bitsOf(from), board.bitsOf(from) + MEMBER_WORDS);
    board.cells[bits + (member >>> 5)]! ^= 1 << (member & 31);
    board.cells[board.factsOf(set) + Facts.hash] = hash;
    board.cells[board.factsOf(set) + Facts.size] = size;
    board.cells[board.factsOf(set) + Facts.uses] = 0;
    board.cells[Header.idleSets]!++;
    found[place] = set;
    return set;
  }

  private differBy(one: number, other: number, member: number): boolean {
    const { cells } = this.board;
    const [a, b] = [this.board.bitsOf(one), this.board.bitsOf(other)];
    for (let word = 0; word < MEMBER_WORDS; word++) {
      const difference = cells[a + word]! ^ cells[b + word]!;
      if (difference !== (word === member >>> 5 ? 1 << (member & 31) : 0)) return false;
    }
    return true;
  }

  private takeId(): number {
    const { cells, sets } = this.board;
    const free = cells[Header.firstFree]!;
    if (free !== 0) {
      cells[Header.firstFree] = cells[this.board.factsOf(free) + Facts.next]!;
      cells[Header.freeSets]!--;
      return free;
    }
    const set = cells[Header.setsMade]! + 1;
    if (set >= sets) return -1;
    cells[Header.setsMade] = set;
    return set;
  }

  /** Makes sets be found by what they are now. Whoever reads or remembers ids sees by the version that they changed. */
  private rebuild(): void {
    const { board } = this;
    const { found } = board;
    board.add(Header.version, 1);
    found.fill(0);
    const made = board.load(Header.setsMade);
    for (let set = 1; set <= made; set++) {
      const facts = board.factsOf(set);
      if (board.cells[facts + Facts.uses]! < 0 || board.cells[facts + Facts.size] === 0) continue;
      let place = placeOf(board.cells[facts + Facts.hash]!, found.length);
      while (found[place] !== 0) place = (place + 1) & (found.length - 1);
      found[place] = set;
    }
  }
}

/** Number of the lowest bit that is set. */
export const lowestBit = (bits: number): number => 31 - Math.clz32(bits & -bits);

const placeOf = (hash: number, places: number): number => (Math.imul(hash, 0x85ebca6b) >>> 8) & (places - 1);

/** A hash for each member. */
const HASHES = Int32Array.from({ length: MAX_MEMBERS }, (_, member) => {
  let hash = Math.imul(member + 1, 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 16), 0x21f0aaad);
  hash = Math.imul(hash ^ (hash >>> 15), 0x735a2d97);
  return hash ^ (hash >>> 15);
});
