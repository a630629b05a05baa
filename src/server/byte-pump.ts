import { COMMENT, type DirectController, directResponse } from "./direct-response.ts";
import { type Ticker, ticker } from "./ticker.ts";

/**
 * Server-sent events that are passed on as bytes over a Bun direct stream. Whoever writes waits until the client has taken what was
 * written, so that nothing piles up here.
 */
export interface BytePumpOptions {
  /** Silence after which a comment is sent, to within a fifth and a second. */
  readonly heartbeatMs: number;
  /** A heartbeat is due and the response has not been asked for yet. */
  onSilent(): void;
  /** The response is over: ended by us, or given up by the client (`isLeft`). Comes exactly once. */
  onClosed(isLeft: boolean): void;
}

const LONGEST_TICK_MS = 1000;

export class BytePump {
  private controller: DirectController | undefined;
  private readonly opened = Promise.withResolvers<void>();
  private finishPull: (() => void) | undefined;
  private isWriting = false;
  private closed = false;
  private lastWrite = Date.now();
  private readonly ticker: Ticker;

  constructor(private readonly options: BytePumpOptions) {
    this.ticker = ticker(Math.min(Math.ceil(options.heartbeatMs / 5), LONGEST_TICK_MS));
    this.ticker.add(this.beat);
  }

  /** The response is over. */
  get isClosed(): boolean {
    return this.closed;
  }

  /**
   * Sends whole events. Resolves when the socket has taken them, or the client is gone; at once (undefined) where that is so already. The
   * next ones may be written then, not before.
   */
  write(events: string | Uint8Array): Promise<void> | undefined {
    if (this.closed) return undefined;
    return this.controller === undefined ? this.opened.promise.then(() => this.write(events)) : this.send(events);
  }

  /** Ends the response after what was written. */
  end(): void {
    if (this.closed) return;
    try {
      this.controller?.end();
    } catch {
      // the client went away first
    }
    this.close(false);
  }

  /** Gives the response up at once, without a proper end. */
  cut(): void {
    if (this.closed) return;
    this.controller?.close(new Error("cut off"));
    this.close(false);
  }

  /** The response. Headers leave when Bun asks for the body. */
  response(headers: Record<string, string>): Response {
    return directResponse(
      (controller) => {
        const over = new Promise<void>((resolve) => {
          this.finishPull = resolve;
        });
        this.controller = controller;
        if (this.closed) this.finishPull?.();
        this.opened.resolve();
        return over;
      },
      () => this.close(),
      headers,
    );
  }

  private readonly beat = (): void => {
    if (this.isWriting || Date.now() - this.lastWrite < this.options.heartbeatMs) return;
    this.lastWrite = Date.now();
    if (this.controller === undefined) this.options.onSilent();
    else void this.send(COMMENT);
  };

  private send(data: string | Uint8Array): Promise<void> | undefined {
    this.lastWrite = Date.now();
    try {
      const written = this.controller!.write(data);
      const flushed = this.controller!.flush();
      if (!(written instanceof Promise) && !(flushed instanceof Promise)) return undefined;
      this.isWriting = true;
      return Promise.all([written, flushed]).then(
        () => {
          this.isWriting = false;
        },
        () => this.close(),
      );
    } catch {
      this.close(); // the client went away between two events
      return undefined;
    }
  }

  /** Safe to call twice. */
  private close(isLeft = true): void {
    if (this.closed) return;
    this.closed = true;
    this.ticker.delete(this.beat);
    this.opened.resolve();
    this.finishPull?.();
    this.options.onClosed(isLeft);
  }
}
