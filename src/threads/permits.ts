/**
 * So many permits, shared by all threads: a byte each that says which thread has it. A count would be quicker, but when a thread dies
 * nobody could tell what it had; like this there never is one too many or too few.
 */
export class Permits {
  /** Those that this thread gave back last: most likely they are still free. */
  private readonly recent: number[] = [];
  private next: number;

  /** `owners` is shared memory, all 0 in the beginning. */
  constructor(
    private readonly owners: Uint8Array,
    private readonly thread: number,
  ) {
    this.next = (thread * 61) % Math.max(1, owners.length); // threads begin to look at different places
  }

  /** A permit for this thread; -1 if there is none. */
  take(): number {
    for (let permit = this.recent.pop(); permit !== undefined; permit = this.recent.pop())
      if (this.tryTake(permit)) return permit;
    const { length } = this.owners;
    for (let looked = 0; looked < length; looked++) {
      const permit = this.next;
      this.next = permit + 1 === length ? 0 : permit + 1;
      if (Atomics.load(this.owners, permit) === 0 && this.tryTake(permit)) return permit;
    }
    return -1;
  }

  private tryTake(permit: number): boolean {
    return Atomics.compareExchange(this.owners, permit, 0, this.thread + 1) === 0;
  }

  /** Gives back a permit of this thread; exactly once each. */
  give(permit: number): void {
    Atomics.store(this.owners, permit, 0);
    if (this.recent.length < RECENT) this.recent.push(permit);
  }

  /** Permits that threads have. */
  taken(): number {
    let count = 0;
    for (let permit = 0; permit < this.owners.length; permit++) if (Atomics.load(this.owners, permit) !== 0) count++;
    return count;
  }

  /** Gives back what a dead thread had. */
  forgetThread(thread: number): void {
    for (let permit = 0; permit < this.owners.length; permit++)
      Atomics.compareExchange(this.owners, permit, thread + 1, 0);
  }
}

const RECENT = 64;
