/** A store in a thread of its own, for all threads of the process: calls come over ports, and those that come together go together. */
import { HistoryConflictError, HistoryUnavailableError, UnknownCursorError } from "./errors.ts";
import type { HistoryStore, StoreMethod } from "./store.ts";

export interface Call {
  readonly method: StoreMethod;
  readonly args: readonly unknown[];
}

export type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** A store whose calls hold the thread until they are done. */
export interface SyncHistory {
  /** All of them in order, each with its own outcome; what they wrote is durable when this returns. */
  execute(calls: readonly Call[]): Outcome[];
  close(): void;
}

/** What a port carries: batches there, each answered by its outcomes. */
export interface CallBatch {
  readonly batch: number;
  readonly calls: readonly Call[];
}
export interface OutcomeBatch {
  readonly batch: number;
  readonly outcomes: readonly WireOutcome[];
}
export type WireOutcome = { readonly value: unknown } | { readonly failure: WireFailure };
interface WireFailure {
  readonly type: "conflict" | "after" | "before" | "unavailable";
  readonly message: string;
}

/** One turn takes no more calls than this, so that the first of them do not wait for all. */
const MOST_CALLS = 512;

/** Serves a store over ports. Batches that wait, of all ports, are executed as one. `first`: a batch that has come over the port already. */
export function serveHistory(store: SyncHistory): { serve(port: MessagePort, first?: CallBatch): void } {
  const waiting: { readonly port: MessagePort; readonly work: CallBatch }[] = [];
  let scheduled = false;

  function turn(): void {
    scheduled = false;
    let taken = 0;
    for (let calls = 0; taken < waiting.length && calls < MOST_CALLS; taken++)
      calls += waiting[taken]!.work.calls.length;
    const batches = waiting.splice(0, taken);
    const outcomes = store.execute(batches.flatMap(({ work }) => work.calls)).map(toWire);
    let at = 0;
    for (const { port, work } of batches) {
      const own = outcomes.slice(at, (at += work.calls.length));
      port.postMessage({ batch: work.batch, outcomes: own } satisfies OutcomeBatch);
    }
    if (waiting.length > 0) schedule();
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(turn);
  }

  return {
    serve(port, first) {
      const take = (work: CallBatch): void => {
        waiting.push({ port, work });
        schedule();
      };
      port.onmessage = ({ data }: MessageEvent<CallBatch>) => take(data);
      if (first !== undefined) take(first);
    },
  };
}

function toWire(outcome: Outcome): WireOutcome {
  if ("value" in outcome) return outcome;
  const { error } = outcome;
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof HistoryConflictError) return { failure: { type: "conflict", message } };
  if (error instanceof UnknownCursorError)
    return { failure: { type: error.param === "before" ? "before" : "after", message } };
  const cause =
    error instanceof HistoryUnavailableError && error.cause instanceof Error ? error.cause.message : message;
  return { failure: { type: "unavailable", message: cause } };
}

function fromWire({ type, message }: WireFailure): Error {
  if (type === "conflict") return new HistoryConflictError(message.replace(/^Conflict with what is stored: /, ""));
  if (type === "unavailable") return new HistoryUnavailableError(new Error(message));
  return new UnknownCursorError(type);
}

/** Calls that may wait in one thread. */
const MOST_WAITING = 10_000;

interface Waiting {
  readonly call: Call;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** The store behind a port of `serveHistory`. One batch is on its way at a time; what comes meanwhile makes the next. */
export function remoteHistory(port: MessagePort): HistoryStore {
  let waiting: Waiting[] = [];
  let running: Waiting[] = [];
  let batch = 0;
  let closed = false;
  let scheduled = false;

  port.onmessage = ({ data }: MessageEvent<OutcomeBatch>) => {
    if (data.batch !== batch) return;
    const done = running;
    running = [];
    send();
    for (const [index, outcome] of data.outcomes.entries()) {
      if ("value" in outcome) done[index]?.resolve(outcome.value);
      else done[index]?.reject(fromWire(outcome.failure));
    }
  };

  function send(): void {
    scheduled = false;
    if (running.length > 0 || waiting.length === 0) return;
    running = waiting;
    waiting = [];
    port.postMessage({ batch: ++batch, calls: running.map(({ call }) => call) } satisfies CallBatch);
  }

  function call(method: StoreMethod, args: readonly unknown[]): Promise<unknown> {
    if (closed) return Promise.reject(new HistoryUnavailableError(new Error("closed")));
    if (waiting.length >= MOST_WAITING)
      return Promise.reject(new HistoryUnavailableError(new Error(`${MOST_WAITING} calls wait already`)));
    return new Promise((resolve, reject) => {
      waiting.push({ call: { method, args }, resolve, reject });
      if (scheduled || running.length > 0) return;
      scheduled = true;
      queueMicrotask(send);
    });
  }

  return storeOf(call, async () => {
    closed = true;
    const unanswered = [...running, ...waiting];
    running = [];
    waiting = [];
    for (const { reject } of unanswered) reject(new HistoryUnavailableError(new Error("closed")));
    port.close();
  });
}

/** A synchronous store in the caller's own thread. */
export function localHistory(store: SyncHistory): HistoryStore {
  return storeOf(
    async (method, args) => {
      const [outcome] = store.execute([{ method, args }]);
      if (outcome !== undefined && "value" in outcome) return outcome.value;
      throw outcome?.error;
    },
    async () => store.close(),
  );
}

const METHODS: Readonly<Record<StoreMethod, true>> = {
  putResponse: true,
  getResponse: true,
  getState: true,
  updateResponse: true,
  deleteResponse: true,
  listResponses: true,
  readChain: true,
  listInputItems: true,
  findItems: true,
  createConversation: true,
  getConversation: true,
  updateConversation: true,
  deleteConversation: true,
  addItems: true,
  getItem: true,
  listItems: true,
  newestItems: true,
  removeItem: true,
  appendEvents: true,
  readEvents: true,
  listUnfinished: true,
  removeExpired: true,
};

/** A store out of one function that makes all its calls. */
export function storeOf(
  call: (method: StoreMethod, args: readonly unknown[]) => Promise<unknown>,
  close: () => Promise<void>,
): HistoryStore {
  const methods = Object.keys(METHODS).map((method) => [
    method,
    (...args: readonly unknown[]) => call(method as StoreMethod, args),
  ]);
  return { ...(Object.fromEntries(methods) as Omit<HistoryStore, "close">), close };
}
