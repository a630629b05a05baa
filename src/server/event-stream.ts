import { COMMENT, type DirectController, directResponse } from "./direct-response.ts";
import { type Ticker, ticker } from "./ticker.ts";

/**
 * Server-sent events over a Bun direct stream: everything written between two flushes leaves in one socket write. Memory is
 * bounded: a client that reads slowly first stops its own producer, and is cut off if that does not help.
 *
 * `write()` of the controller returns a number while the socket takes data, and a Promise once it is full; from then on data
 * waits here. `close(reason)` resets the connection; `end()` waits for the reader.
 */
export interface EventStreamOptions {
  /** Silence after which a comment is sent, to within a fifth and a second. */
  readonly heartbeatMs: number;
  /** What is sent instead of a comment. */
  readonly keepAlive?: string;
  /** A heartbeat is due and the response has not been asked for yet. */
  onSilent?(): void;
  /** The client reads too slowly: stop producing until `onResume`. */
  onPause(): void;
  onResume(): void;
  /** The response is over: ended by us, or given up by the client. Comes exactly once. */
  onClosed(): void;
}

/** Characters waiting for the client after which the producer is paused, and after which the client is cut off. */
const PAUSE_AT = 1 << 18;
const CUT_AT = 1 << 25;

/** Bun sends what is longer than the high-water mark with the write itself; a flush would be one more call. */
const AT_ONCE = 64;
const LONGEST_TICK_MS = 1000;

export class EventStream {
  private waiting = "";
  private controller: DirectController | undefined;
  private full = false;
  private paused = false;
  private ending = false;
  private closed = false;
  private lastWrite = Date.now();
  private readonly ticker: Ticker;
  private finishPull: (() => void) | undefined;

  constructor(private readonly options: EventStreamOptions) {
    this.ticker = ticker(Math.min(Math.ceil(options.heartbeatMs / 5), LONGEST_TICK_MS));
    this.ticker.add(this.beat);
  }

  /** The socket has not taken yet what was sent. */
  get isBehind(): boolean {
    return this.full;
  }

  /** Adds a whole frame (`data: ...\n\n`); it leaves with the next flush. */
  write(frame: string): void {
    if (this.closed || this.ending) return;
    this.waiting += frame;
  }

  flush(): void {
    if (this.closed || this.waiting === "") return;
    if (this.controller !== undefined && !this.full) this.send();
    else this.bound();
  }

  /** Ends the response after what was written. */
  end(): void {
    if (this.closed || this.ending) return;
    this.ending = true;
    if (this.controller === undefined || this.full) return;
    if (this.waiting !== "") this.send();
    this.finish();
  }

  /** Gives the response up at once, without a proper end. */
  cut(): void {
    if (this.closed) return;
    this.controller?.close(new Error("cut off"));
    this.close();
  }

  /** The response. Headers leave when Bun asks for the body, so call it once something is to be said. */
  response(headers: Record<string, string>): Response {
    return directResponse(
      (controller) => {
        const over = new Promise<void>((resolve) => {
          this.finishPull = resolve;
        });
        this.controller = controller;
        if (this.closed) this.finishPull?.();
        else this.start();
        return over;
      },
      () => this.close(),
      headers,
      { highWaterMark: AT_ONCE },
    );
  }

  private start(): void {
    if (this.waiting === "") this.waiting = COMMENT; // the status line must leave now, and does with the first byte only
    this.send();
    if (!this.full) this.settled();
  }

  private readonly beat = (): void => {
    if (this.full || Date.now() - this.lastWrite < this.options.heartbeatMs) return;
    if (this.controller === undefined) {
      this.lastWrite = Date.now();
      this.options.onSilent?.();
      return;
    }
    this.waiting += this.options.keepAlive ?? COMMENT;
    this.flush();
  };

  private send(): void {
    const controller = this.controller!;
    const data = this.waiting;
    this.waiting = "";
    this.lastWrite = Date.now();
    try {
      const written = controller.write(data);
      const flushed = data.length > AT_ONCE ? undefined : controller.flush();
      if (written instanceof Promise || flushed instanceof Promise) {
        this.full = true;
        Promise.all([written, flushed]).then(
          () => this.drained(),
          () => this.close(),
        );
      }
    } catch {
      this.close(); // the client went away between two events
    }
  }

  private drained(): void {
    this.full = false;
    if (this.closed) return;
    if (this.waiting !== "") this.send();
    if (!this.full) this.settled();
  }

  /** The socket has taken everything: end if that was all, else let the producer go on. */
  private settled(): void {
    if (this.ending) this.finish();
    else if (this.paused && !this.closed) {
      this.paused = false;
      this.options.onResume();
    }
  }

  private bound(): void {
    if (this.waiting.length > CUT_AT) this.cut();
    else if (!this.paused && this.waiting.length > PAUSE_AT) {
      this.paused = true;
      this.options.onPause();
    }
  }

  private finish(): void {
    if (this.closed) return;
    try {
      this.controller!.end();
    } catch {
      // the client went away first
    }
    this.close();
  }

  /** Safe to call twice; also called when the client is gone. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.waiting = "";
    this.ticker.delete(this.beat);
    this.finishPull?.();
    this.options.onClosed();
  }
}
