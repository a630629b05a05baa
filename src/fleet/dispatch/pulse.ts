/** One look at all that a thread has with workers, several times a second: tokens set a mark, and no timer runs for one of them. */
import type { Clock } from "../clock.ts";

export interface Beating {
  /** `now`: as of the clock. */
  beat(now: number): void;
}

const PERIOD_MS = 250;

export class Pulse {
  private readonly members = new Set<Beating>();
  private callOff: (() => void) | undefined;

  constructor(private readonly clock: Clock) {}

  add(member: Beating): void {
    this.members.add(member);
    this.callOff ??= this.clock.after(PERIOD_MS, this.beat);
  }

  delete(member: Beating): void {
    this.members.delete(member);
  }

  /** The timer outlives the last member by a beat: it isn't armed anew for every request. */
  private readonly beat = (): void => {
    this.callOff = undefined;
    if (this.members.size === 0) return;
    this.callOff = this.clock.after(PERIOD_MS, this.beat);
    const now = this.clock.now();
    for (const member of this.members) member.beat(now);
  };
}
