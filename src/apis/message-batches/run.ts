/**
 * The work on a batch. Its results lie in the log of its row, one event each, in the order in which they came; the row says how far it is.
 * A batch whose runner has gone is gone on with by whoever is asked for it: of two that do so, the log takes the results of one.
 */
import { ClientClosedError, type GatewayError, gatewayError, ShuttingDownError } from "../../errors.ts";
import { HistoryConflictError } from "../../history/errors.ts";
import { memberText } from "../../history/json-text.ts";
import type { HistoryStore, ResponseState } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import { isLost } from "../shared/lost-run.ts";
import { watchRow } from "../shared/row-watch.ts";
import { takingTurns } from "../tokens/turns.ts";
import { type ItemResult, itemResult } from "./item.ts";
import { type BatchBody, timeText } from "./object.ts";

/** Requests of a batch that are worked on at a time: others want the engines as well. */
const AT_ONCE = 16;
/** Statuses of a batch that has not ended. */
const UNFINISHED = ["in_progress", "canceling"];
/** Results that are written at a time. */
const STORED_AT_ONCE = 1000;
/** Nobody ends the work by that. */
const NEVER = new AbortController().signal;
const PAGE = { maxEvents: 1000, maxBytes: 1 << 22 };

/** The client has cancelled the batch, or deleted it. */
export class BatchCancelledError extends ClientClosedError {}
/** There is no time left for it. */
class BatchExpiredError extends ClientClosedError {}
/** Somebody else works on it. */
class NotOursError extends ClientClosedError {}

interface Batch {
  readonly tenant: string;
  readonly id: string;
}

/** Goes on with a batch that is not over and that nobody works on any more. `updatedAt`: as of the store's `getState`. */
export function resumeLost(
  batch: Batch,
  updatedAt: number | null,
  history: HistoryStore,
  context: ServerContext,
): void {
  if (context.runs.get(batch.id) === undefined && isLost(updatedAt)) startBatch(batch, history, context);
}

/** Works on a batch that lies in the history, until it has ended or the gateway stops. */
export function startBatch(batch: Batch, history: HistoryStore, context: ServerContext): void {
  const controller = new AbortController();
  const abort = (reason: GatewayError) => controller.abort(reason);
  const stopWatch = watchRow({ ...batch, unfinished: UNFINISHED, reason }, history, abort);
  // a shutdown waits for it; its limit of time is that of each request, not of the batch
  const scope = context.scopes.begin(batch.id, new AbortController().signal, batch.tenant);
  const done = work(batch, history, context, controller.signal)
    .catch((error: unknown) => {
      if (error instanceof NotOursError) return undefined;
      if (error instanceof ShuttingDownError) return leave(batch, history);
      context.log.error("a batch of messages stands still", { request: batch.id, error });
      return undefined;
    })
    .finally(() => {
      stopWatch();
      scope.finish();
    });
  context.runs.add({ id: batch.id, done, abort });
}

/** The next gateway need not wait until it is clear that nobody works on it. */
async function leave({ tenant, id }: Batch, history: HistoryStore): Promise<void> {
  await history.updateResponse({ tenant, id, updatedAt: 0, ifStatus: UNFINISHED }).catch(() => {});
}

async function work(
  { tenant, id }: Batch,
  history: HistoryStore,
  context: ServerContext,
  signal: AbortSignal,
): Promise<void> {
  await history.updateResponse({ tenant, id, updatedAt: Date.now(), ifStatus: UNFINISHED });
  const row = await history.getResponse(tenant, id);
  if (row === null || row.status === "ended") return;
  const giveWay = takingTurns(NEVER);
  const { done, counts, next } = await logged(history, tenant, id, giveWay);
  const left: Item[] = [];
  for (const json of row.input) {
    const custom = customId(json);
    if (!done.has(custom)) left.push({ custom, json });
    await giveWay();
  }
  let taken = 0;
  let last = Promise.resolve<void>(undefined);
  /** Each that works on requests looks after the one before it whether it is to give way. */
  const turn = () => (last = last.then(giveWay));
  const results = new Results(history, { tenant, id }, next, counts);
  const abort = new AbortController();
  const expire = () => abort.abort(new BatchExpiredError());
  const expiry = setTimeout(expire, timeLeft(row.body));
  if (timeLeft(row.body) === 0) expire();
  const stop = AbortSignal.any([signal, abort.signal]);
  if (row.status === "canceling") abort.abort(new BatchCancelledError());

  /** Takes one request after the other; of what was given up, all say so. What a shutdown leaves is for the next gateway. */
  async function take(): Promise<void> {
    for (;;) {
      await turn();
      if (context.draining() || taken >= left.length) return;
      if (stop.aborted) giveUp(left.slice(taken, (taken += STORED_AT_ONCE)));
      else {
        const { custom, json } = left[taken++]!;
        results.put(custom, await outcome(json));
      }
      await results.stored();
    }
  }
  function giveUp(requests: readonly Item[]): void {
    for (const { custom } of requests) results.put(custom, unanswered(stop.reason));
  }
  async function outcome(json: string): Promise<Outcome> {
    try {
      return await itemResult(json, tenant, context, stop);
    } catch (error) {
      return unanswered(error);
    }
  }
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, take));
  } catch (error) {
    abort.abort(gatewayError(error)); // the others are of no use
    throw error;
  } finally {
    clearTimeout(expiry);
  }
  if (taken < left.length) throw new ShuttingDownError();
  await end({ tenant, id }, results.counts, history);
}

interface Item {
  readonly custom: string;
  readonly json: string;
}

interface Outcome {
  readonly type: ItemResult;
  readonly json: string;
}

/** What requests come to that are given up for `reason`. Throws it where they are not, but left to somebody else. */
function unanswered(reason: unknown): Outcome {
  const type =
    reason instanceof BatchCancelledError ? "canceled" : reason instanceof BatchExpiredError ? "expired" : undefined;
  if (type === undefined) throw reason;
  return { type, json: `{"type":"${type}"}` };
}

const customId = (json: string): string => JSON.parse(memberText(json, "custom_id") ?? '""') as string;
const timeLeft = (body: string): number =>
  Math.max(0, Date.parse((JSON.parse(body) as BatchBody).expires_at) - Date.now());

type Counts = Record<ItemResult, number>;
const noCounts = (): Counts => ({ succeeded: 0, errored: 0, canceled: 0, expired: 0 });

/** What was done before. */
async function logged(
  history: HistoryStore,
  tenant: string,
  id: string,
  giveWay: () => Promise<void> | undefined,
): Promise<{ readonly done: ReadonlySet<string>; readonly counts: Counts; readonly next: number }> {
  const done = new Set<string>();
  const counts = noCounts();
  let after = -1;
  for await (const page of resultPages(history, tenant, id)) {
    for (const { json, sequence } of page) {
      const { custom_id: custom, result } = JSON.parse(json) as { custom_id: string; result: { type: ItemResult } };
      done.add(custom);
      counts[result.type]++;
      after = sequence;
      await giveWay();
    }
  }
  return { done, counts, next: after + 1 };
}

/** The results of a batch, `{"custom_id": …, "result": …}` each. */
export async function* resultPages(history: HistoryStore, tenant: string, id: string) {
  for (let after = -1; ; ) {
    const page = await history.readEvents(tenant, id, after, PAGE);
    const last = page?.at(-1);
    if (page === null || last === undefined) return;
    yield page;
    after = last.sequence;
  }
}

/** Appends results to the log, one write after the other; what comes meanwhile goes with the next. */
class Results {
  private readonly waiting: string[] = [];
  private writing: Promise<void> | undefined;

  constructor(
    private readonly history: HistoryStore,
    private readonly of: Batch,
    private next: number,
    readonly counts: Counts,
  ) {}

  put(custom: string, { type, json }: Outcome): void {
    this.waiting.push(`{"custom_id":${JSON.stringify(custom)},"result":${json}}`);
    this.counts[type]++;
  }

  /** Resolves when all are stored. Rejects with NotOursError where another runner has gone on with the batch, or it is gone. */
  async stored(): Promise<void> {
    while (this.waiting.length > 0) {
      this.writing ??= this.write();
      await this.writing;
    }
    await this.writing;
  }

  private async write(): Promise<void> {
    const events = this.waiting.splice(0, STORED_AT_ONCE);
    const { tenant, id } = this.of;
    try {
      if (!(await this.history.appendEvents(tenant, id, this.next, events))) throw new NotOursError();
      this.next += events.length;
    } catch (error) {
      if (error instanceof HistoryConflictError) throw new NotOursError();
      throw error;
    } finally {
      this.writing = undefined;
    }
  }
}

/** Of a cancel that comes meanwhile the row says that it came. */
async function end({ tenant, id }: Batch, counts: Counts, history: HistoryStore): Promise<void> {
  for (let outcome = "other_status"; outcome === "other_status"; ) {
    const row = await history.getResponse(tenant, id);
    if (row === null || row.status === "ended") return;
    const now = Date.now();
    const body = {
      ...(JSON.parse(row.body) as BatchBody),
      request_counts: { processing: 0, ...counts },
      ended_at: timeText(now),
    };
    outcome = await history.updateResponse({
      tenant,
      id,
      updatedAt: now,
      ifStatus: [row.status],
      status: "ended",
      result: { body: JSON.stringify(body), output: [], itemIds: [] },
    });
  }
}

/** Why the work on a batch is to end: it was cancelled or deleted, or ended by others. */
function reason(state: ResponseState | null): GatewayError | undefined {
  if (state === null || state.status === "ended") return new NotOursError();
  return state.status === "canceling" ? new BatchCancelledError() : undefined;
}
