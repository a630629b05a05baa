/** Requests on their way to a model's HTTP workers. */
import { EngineError } from "../../engines/engine.ts";
import { withoutAddresses } from "../../engines/engine-error.ts";
import { readAll } from "../../engines/http/body.ts";
import type { HttpAsk, HttpEndpoint, HttpReply } from "../../engines/http/engine.ts";
import { kindOfStatus, statusError } from "../../engines/http/status.ts";
import { idOfTry } from "../../fleet/dispatch/attempts.ts";
import { Doubts } from "../../fleet/dispatch/pair-doubt.ts";
import { firstAnswer } from "../../fleet/dispatch/promised.ts";
import { unlessRemoved } from "../../fleet/dispatch/retries.ts";
import type { HttpLease, RouteTrace } from "../../fleet/lease.ts";
import type { FleetView } from "../../fleet/view.ts";
import { withMember } from "../../generation/raw-members.ts";
import type { RouteAsk } from "../../routing/ask.ts";
import { endpointName } from "../../server/request-metrics.ts";
import { beginPair, isMeeting } from "./pair.ts";
import { HttpPair } from "./pair-lease.ts";
import { atRank } from "./route.ts";

export interface ForwardAsk {
  readonly endpoint: HttpEndpoint;
  /** What workers know the request by. */
  readonly requestId: string;
  /** A name of the model, as the client gave it. */
  readonly model: string;
  /** The client's JSON, which goes on as it is but for the model's name. */
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
  /** By what the worker is chosen. */
  readonly route: RouteAsk;
  readonly trace: RouteTrace | undefined;
}

/** An answer that has begun to come. The place at the worker is held: whoever has this gives it back. */
export interface Forwarded {
  readonly lease: HttpLease;
  readonly reply: HttpReply;
  /** What came first; undefined: nothing will. */
  readonly first: Uint8Array | undefined;
  /** The rest. Rejects with EngineErrors: "cancelled" when the signal fires, or its reason if that is one. */
  read(): Promise<Uint8Array | undefined>;
  /** Nothing more of it is wanted: the worker is told, if it has not ended. */
  cancel(): void;
}

/** The worker refused the request, in words that are its own. */
export class RefusedError extends EngineError {
  constructor(
    readonly status: number,
    readonly contentType: string | null,
    /** Without addresses. */
    readonly text: string,
    failure: EngineError,
  ) {
    super(failure.kind, failure.message, { retryAfterMs: failure.retryAfterMs });
  }
}

/** What one worker may prefill for another. */
const GENERATIONS: ReadonlySet<HttpEndpoint> = new Set(["/v1/chat/completions", "/v1/completions"]);

/** Bytes that the words of a refusal may have. */
const REFUSAL_BYTES = 1 << 20;

/**
 * Sends a request to the HTTP worker that the policy chooses, and on to others as long as they fail before anything has come. Resolves when the body of
 * an answer begins. Rejects with EngineErrors ("cancelled" when `signal` fires, RefusedError with what a worker said), NoWorkersError and
 * ModelNotFoundError.
 */
export async function forward(ask: ForwardAsk, fleet: FleetView, signal: AbortSignal): Promise<Forwarded> {
  const { id } = fleet.entry(ask.model);
  const { route, trace } = ask;
  const isSplit = GENERATIONS.has(ask.endpoint) && fleet.isSplitOverHttp(id);
  const doubts = new Doubts();
  return firstAnswer<HttpLease, Forwarded>(
    {
      endpoint: endpointName(ask.endpoint),
      model: id,
      lease: (tried) =>
        isSplit
          ? doubts.book(tried, (all) => new HttpPair(fleet.leaseHttpPair(id, { route, trace, tried: all })))
          : fleet.leaseHttp(id, { route, trace, tried }),
      async work(lease, attempt, either) {
        const beginAt = (place: HttpLease, text: string, until: AbortSignal) =>
          begin(place, { ...ask, text }, attempt, until, fleet);
        const begun = await (lease instanceof HttpPair
          ? beginPair(lease, ask.text, beginAt, fleet, either)
          : beginAt(lease, ask.text, either));
        if (lease instanceof HttpPair) doubts.settle(lease.doubted, (worker) => fleet.judge(worker, "failure"));
        fleet.observer.tried(lease.worker, undefined);
        return begun;
      },
      isInDoubt(lease, error) {
        const isInDoubt = lease instanceof HttpPair && lease.isInDoubt(error);
        if (isInDoubt) {
          doubts.add(lease.doubted);
          fleet.observer.pairFailed(isMeeting(lease) ? "meeting" : "transfer");
        }
        return isInDoubt;
      },
    },
    fleet,
    signal,
  );
}

/** One try at one worker. A failure that `signal` gives as its reason is what the reading of an answer that has begun fails with, too. */
async function begin(
  lease: HttpLease,
  { endpoint, requestId, model, text, headers }: ForwardAsk,
  attempt: number,
  signal: AbortSignal,
  fleet: FleetView,
): Promise<Forwarded> {
  const { engine, worker } = lease;
  const name = engine.nameOf(worker.model);
  const named = name === model ? text : withMember(text, "model", JSON.stringify(name));
  const { rank } = worker;
  const ask: HttpAsk = {
    endpoint,
    body: rank === undefined ? named : atRank(named, rank),
    headers: {
      ...headers,
      "x-request-id": idOfTry(requestId, attempt),
      ...(rank !== undefined && { "x-data-parallel-rank": String(rank) }),
    },
  };
  const reply = await engine.forward(ask, signal);
  if (kindOfStatus(reply.status) !== undefined) throw await refusal(reply);
  if (isCompressed(reply)) {
    await reply.body?.cancel();
    throw new EngineError("failed", "the engine compressed its answer, though it was asked not to");
  }
  const reader = reply.body?.getReader();
  const read = async (): Promise<Uint8Array | undefined> => {
    try {
      return (await reader?.read())?.value;
    } catch (error) {
      throw signal.aborted && signal.reason instanceof EngineError ? signal.reason : unlessRemoved(fleet, lease, error);
    }
  };
  const first = await read();
  lease.begun();
  return { lease, reply, first, read, cancel: () => void reader?.cancel().catch(() => {}) };
}

/** Servers are asked not to: an answer is cut between events and looked into for its usage. */
function isCompressed({ headers }: HttpReply): boolean {
  const encoding = headers.get("content-encoding");
  return encoding !== null && encoding !== "" && encoding !== "identity";
}

/** Statuses that mean the gateway's key. What is said of it may repeat it: that is for nobody to read. */
const KEY_REFUSED: ReadonlySet<number> = new Set([401, 403]);

async function refusal({ status, headers, body }: HttpReply): Promise<EngineError> {
  if (KEY_REFUSED.has(status)) {
    await body?.cancel();
    return new EngineError("failed", `the engine refuses the gateway's key (${status})`);
  }
  const bytes = body === null ? new Uint8Array() : await readAll(body, REFUSAL_BYTES);
  const text = new TextDecoder().decode(bytes);
  const failure = statusError(status, text, headers.get("retry-after"));
  return new RefusedError(status, headers.get("content-type"), withoutAddresses(text), failure);
}
