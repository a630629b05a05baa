import { ClientClosedError, GatewayError, gatewayError } from "../../errors.ts";
import { HistoryConflictError } from "../../history/errors.ts";
import type { HistoryStore } from "../../history/store.ts";
import { retryStore } from "./store-retry.ts";

/** Events are stored after so long where somebody of this thread reads them as they come, else later, or once there are so many characters. */
const READ_AFTER_MS = 50;
const UNREAD_AFTER_MS = 200;
const STORE_AT = 1 << 16;
/** Characters of all events of a run: far more than any answer. */
const MOST_LOGGED = 16 << 20;

/** The events of a run take more room than there is for them. */
export class TooManyEventsError extends GatewayError {
  readonly status = 500;
  readonly code = "too_many_events";
  constructor() {
    super(`The events of the answer are larger than ${MOST_LOGGED >> 20} MB`);
  }
}

/** The run's row is gone, or others have ended it: nobody would read what comes, and none of it can be kept. */
export class RunOverError extends ClientClosedError {}

/**
 * Writes the log of a run: events are numbered from 0 in the order in which they come, and many are stored at once. The last events, which
 * tell how it ended, don't belong here: they are made of the stored result, so that the two can't disagree.
 */
export class EventLog {
  /** Called when events were stored. */
  readonly readers = new Set<() => void>();
  private waiting: string[] = [];
  private size = 0;
  private total = 0;
  private stored = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private writing: Promise<void> | undefined;
  private closed = false;
  private failure: unknown;

  /** `abort` ends the run: there is no room or no store for its events, or it is over for all others (`RunOverError`). */
  constructor(
    private readonly history: HistoryStore,
    private readonly of: { readonly tenant: string; readonly id: string },
    private readonly abort: (reason: GatewayError) => void,
  ) {}

  /** Adds an event, a JSON text. Nothing is added once it is closed. */
  append(json: string): void {
    if (this.closed) return;
    this.waiting.push(json);
    this.size += json.length;
    this.total += json.length;
    if (this.total > MOST_LOGGED) this.abort(new TooManyEventsError());
    if (this.size >= STORE_AT) this.write();
    else this.timer ??= setTimeout(() => this.write(), this.readers.size > 0 ? READ_AFTER_MS : UNREAD_AFTER_MS);
  }

  /** Resolves when all events are stored. Rejects with what kept them from it. */
  async close(): Promise<void> {
    this.closed = true;
    while (this.writing !== undefined || this.waiting.length > 0) await this.write();
    if (this.failure !== undefined) throw this.failure;
  }

  private write(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.writing ??= this.writeAll().finally(() => {
      this.writing = undefined;
    });
    return this.writing;
  }

  private async writeAll(): Promise<void> {
    try {
      while (this.waiting.length > 0) {
        const events = this.waiting;
        this.waiting = [];
        this.size = 0;
        await this.store(events);
        for (const wake of this.readers) wake();
      }
    } catch (error) {
      this.failure = error;
      this.closed = true;
      this.waiting = [];
      this.abort(gatewayError(error));
    }
  }

  private async store(events: readonly string[]): Promise<void> {
    const { tenant, id } = this.of;
    await retryStore(async (attempt) => {
      try {
        if (!(await this.history.appendEvents(tenant, id, this.stored, events))) throw new RunOverError();
      } catch (error) {
        // one that got no answer was made after all
        if (!(error instanceof HistoryConflictError) || attempt === 1) throw error;
      }
    });
    this.stored += events.length;
  }
}
