/** Streams of what runs in the background: the log again, from any event on, and then what comes, from whichever thread or gateway. */
import { ShuttingDownError } from "../../errors.ts";
import type { HistoryStore, StoredResponse } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import { EventStream } from "../../server/event-stream.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { logOf } from "./background.ts";
import { endLost, isLost, type LostKind } from "./lost-run.ts";

export interface Followed {
  readonly id: string;
  readonly tenant: string;
  /** Number of the last event that the client has; -1 for none. */
  readonly after: number;
  readonly lost: LostKind;
  /** An event as a frame. */
  readonly frame: (json: string) => string;
  /**
   * The events behind the log's `last` one (undefined: it has none) up to the final state, as JSON texts; the first of them has the number
   * `next`.
   */
  readonly ending: (row: StoredResponse, next: number, last: string | undefined) => readonly string[];
  /** The frame behind the last event. */
  readonly close: string;
}

const BATCH = { maxEvents: 1000, maxBytes: 1 << 18 };
/** Pauses between two looks at a log that another thread writes. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;
/** What a run that is ended by a shutdown has for its last words. */
const LAST_WORDS_MS = 500;

/** Answers at once; the scope is finished when the stream ends. */
export function followLog(
  followed: Followed,
  history: HistoryStore,
  context: ServerContext,
  scope: RequestScope,
  headers: Record<string, string>,
): Response {
  const { id, tenant } = followed;
  let paused = false;
  let closed = false;
  const bell = new Bell();
  const out = new EventStream({
    heartbeatMs: context.config.sseHeartbeatSecs * 1000,
    onPause() {
      paused = true;
    },
    onResume() {
      paused = false;
      bell.ring();
    },
    onClosed() {
      closed = true;
      bell.ring();
      scope.finish();
    },
  });
  const run = context.runs.get(id);
  const log = run && logOf(run);
  log?.readers.add(bell.ring);
  scope.signal.addEventListener("abort", bell.ring);

  async function follow(): Promise<void> {
    let { after } = followed;
    let pause = FIRST_PAUSE_MS;
    while (!closed) {
      const events = await history.readEvents(tenant, id, after, BATCH);
      if (events === null) return out.cut(); // it was deleted
      for (const { sequence, json } of events) {
        out.write(followed.frame(json));
        after = sequence;
      }
      out.flush();
      while (paused && !closed) await bell.wait(LONGEST_PAUSE_MS);
      if (events.length > 0) {
        pause = FIRST_PAUSE_MS;
        continue;
      }
      const state = await history.getState(tenant, id);
      if (state === null) return out.cut();
      if (state.updatedAt === null) {
        // what was logged between the two looks
        if ((await history.readEvents(tenant, id, after, BATCH))?.length) continue;
        return tellEnd(after);
      }
      if (isLost(state.updatedAt)) await endLost(history, tenant, id, followed.lost);
      else if (scope.signal.aborted) {
        if (!(scope.signal.reason instanceof ShuttingDownError) || run === undefined) return out.cut();
        // a run of this thread ends now, too
        const over = await Promise.race([run.done.then(() => true), Bun.sleep(LAST_WORDS_MS).then(() => false)]);
        if (!over) return out.cut();
      } else {
        await bell.wait(pause);
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
    }
  }

  async function tellEnd(after: number): Promise<void> {
    const row = await history.getResponse(tenant, id);
    if (row === null) return out.cut();
    const end = await logEnd(history, tenant, id, after);
    if (end !== undefined)
      followed.ending(row, end.next, end.last).forEach((json, index) => {
        if (end.next + index > after) out.write(followed.frame(json));
      });
    out.write(followed.close);
    out.end();
  }

  follow()
    .catch((error: unknown) => {
      context.log.warn("a log could not be followed", { request: scope.id, error });
      out.cut();
    })
    .finally(() => {
      log?.readers.delete(bell.ring);
      scope.signal.removeEventListener("abort", bell.ring);
    });
  return out.response(headers);
}

/** Wakes the one who waits. */
class Bell {
  private rung = false;
  private wake: (() => void) | undefined;

  readonly ring = (): void => {
    this.rung = true;
    this.wake?.();
  };

  /** Until it is rung, or has been since the last wait, but no longer than `ms`. */
  async wait(ms: number): Promise<void> {
    if (!this.rung)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    this.rung = false;
    this.wake = undefined;
  }
}

/** Events that an ending has at most, but for the last one. */
const LONGEST_ENDING = 8;

/**
 * The last event of a log in which nothing comes behind `after`, and the number behind it. A client that has had some of the ending has a
 * number that is a little above; undefined for one that is further off, who has had all.
 */
async function logEnd(
  history: HistoryStore,
  tenant: string,
  id: string,
  after: number,
): Promise<{ readonly next: number; readonly last: string | undefined } | undefined> {
  for (let last = after; last >= after - LONGEST_ENDING; last--) {
    if (last < 0) return { next: 0, last: undefined };
    const [event] = (await history.readEvents(tenant, id, last - 1, { maxEvents: 1, maxBytes: 1 })) ?? [];
    if (event !== undefined) return { next: last + 1, last: event.json };
  }
  return undefined;
}
