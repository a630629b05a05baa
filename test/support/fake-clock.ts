import type { Clock } from "../../src/fleet/clock.ts";

/** A clock that a test moves. */
export class FakeClock implements Clock {
  private time = 1_700_000_000_000;
  private readonly due = new Map<number, { readonly at: number; readonly run: () => void }>();
  private last = 0;

  now(): number {
    return this.time;
  }

  after(ms: number, run: () => void): () => void {
    const id = ++this.last;
    this.due.set(id, { at: this.time + ms, run });
    return () => this.due.delete(id);
  }

  /** Waits that are open. */
  get waits(): number {
    return this.due.size;
  }

  /** Lets time pass, and everything that is due on the way happen in its order, with what follows of it. */
  async pass(ms: number): Promise<void> {
    const until = this.time + ms;
    await settled();
    for (;;) {
      const next = [...this.due].filter(([, { at }]) => at <= until).toSorted(([, a], [, b]) => a.at - b.at)[0];
      if (next === undefined) break;
      const [id, { at, run }] = next;
      this.due.delete(id);
      this.time = Math.max(this.time, at);
      run();
      await settled();
    }
    this.time = until;
  }
}

/** What is due without a clock has happened. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 30; i++) await Promise.resolve();
}
