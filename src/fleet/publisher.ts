/** Tells the threads of the fleet: changes that come together are told together. */
import type { Clock } from "./clock.ts";

/** While one telling is on its way, what changes meanwhile waits so long for company. */
const COMPANY_MS = 20;

export class Publisher {
  private next: Promise<void> | undefined;
  private running = 0;

  /** `publish` sends the fleet as it is then, and resolves when every thread knows it. */
  constructor(
    private readonly clock: Clock,
    private readonly publish: () => Promise<void>,
  ) {}

  /** Resolves when every thread knows what is the case now. */
  tell(): Promise<void> {
    this.next ??= this.soon().then(() => {
      this.next = undefined;
      this.running++;
      return this.publish().finally(() => this.running--);
    });
    return this.next;
  }

  private soon(): Promise<void> {
    if (this.running === 0) return Promise.resolve();
    return new Promise((resolve) => this.clock.after(COMPANY_MS, resolve));
  }
}
