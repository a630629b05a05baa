/** Pings of a connection: is the peer still there? */

/** Calls `send` every `intervalMs`, and `onLost` when no answer came within `timeoutMs`. Sends no ping while one is unanswered. */
export class Pings {
  private readonly interval: ReturnType<typeof setInterval>;
  private timeout: ReturnType<typeof setTimeout> | undefined;

  constructor(intervalMs: number, timeoutMs: number, send: () => void, onLost: () => void) {
    this.interval = setInterval(() => {
      if (this.timeout !== undefined) return;
      this.timeout = setTimeout(onLost, timeoutMs);
      this.timeout.unref();
      send();
    }, intervalMs);
    this.interval.unref();
  }

  answered(): void {
    clearTimeout(this.timeout);
    this.timeout = undefined;
  }

  stop(): void {
    clearInterval(this.interval);
    this.answered();
  }
}
