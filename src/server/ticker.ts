/** Calls many things back at one period, with one timer; idle without members. */
export class Ticker {
  private readonly members = new Set<() => void>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly periodMs: number) {}

  add(member: () => void): void {
    this.members.add(member);
    this.timer ??= setInterval(() => {
      for (const each of this.members) each();
    }, this.periodMs);
  }

  delete(member: () => void): void {
    this.members.delete(member);
    if (this.members.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

const tickers = new Map<number, Ticker>();

/** The thread's ticker of a period. */
export function ticker(periodMs: number): Ticker {
  let found = tickers.get(periodMs);
  if (found === undefined) {
    found = new Ticker(periodMs);
    tickers.set(periodMs, found);
  }
  return found;
}
