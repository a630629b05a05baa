/** What becomes of requests at workers, counted. */
import { EngineError } from "../../engines/engine.ts";
import type { MetricRegistry } from "../../telemetry/registry.ts";
import type { OnBreaker } from "../place.ts";
import { HTTP_DIALECT, type WorkerEntry } from "../snapshot.ts";

/** Told of what becomes of requests. */
export interface DispatchObserver {
  /** A request was given to a worker. */
  chosen(worker: WorkerEntry): void;
  /** A try at a worker has ended; `error` is undefined for a good end. */
  tried(worker: WorkerEntry, error: unknown): void;
  /** The circuit breaker of a worker has counted an end. */
  judged(worker: WorkerEntry, isFailure: boolean): void;
  readonly breaker: OnBreaker;
  /** A request is sent to another worker, as one has failed. `endpoint` as in the table of metrics, here and below. */
  retried(endpoint: string): void;
  /** `made`: tries before it. */
  paused(made: number, ms: number): void;
  /** A request that was sent to several workers has failed at all of them. */
  exhausted(endpoint: string): void;
  budgetDenied(): void;
  /** A second worker was asked beside a slow one, and began before it, or not. */
  hedged(result: "won" | "lost"): void;
  /** Another model has answered in the place of the one that was asked for. */
  fellBack(from: string, to: string): void;
}

/** For whom nobody counts. */
export const UNOBSERVED: DispatchObserver = {
  chosen() {},
  tried() {},
  judged() {},
  breaker() {},
  retried() {},
  paused() {},
  exhausted() {},
  budgetDenied() {},
  hedged() {},
  fellBack() {},
};

/** How ends of tries are told as HTTP statuses. */
const STATUS: Readonly<Record<string, string>> = {
  invalid: "400",
  overloaded: "429",
  unavailable: "503",
  timeout: "504",
  not_found: "404",
  unimplemented: "501",
  constraint: "422",
  cancelled: "499",
  failed: "500",
};

const modeOf = ({ dialect }: WorkerEntry): "grpc" | "http" => (dialect === HTTP_DIALECT ? "http" : "grpc");
const typeOf = ({ facts }: WorkerEntry): string => facts?.role ?? "regular";

/** Counts in a thread's registry. `onBreaker` is told besides. */
export function countingObserver(metrics: MetricRegistry, onBreaker: OnBreaker): DispatchObserver {
  /** Counters of a worker, found once. */
  const ofWorker = new WeakMap<WorkerEntry, { readonly chosen: () => void; readonly good: () => void }>();
  const countersOf = (worker: WorkerEntry) => {
    let its = ofWorker.get(worker);
    if (its === undefined) {
      const mode = modeOf(worker);
      const chosen = metrics.counter("smg_worker_selection_total", typeOf(worker), mode, worker.model, "least_load");
      const good = metrics.counter("smg_router_upstream_responses_total", mode, "200", "");
      its = { chosen: () => chosen.add(), good: () => good.add() };
      ofWorker.set(worker, its);
    }
    return its;
  };
  return {
    chosen: (worker) => countersOf(worker).chosen(),
    tried(worker, error) {
      if (error === undefined) {
        countersOf(worker).good();
        return;
      }
      const kind = error instanceof EngineError ? error.kind : "failed";
      const mode = modeOf(worker);
      metrics.counter("smg_router_upstream_responses_total", mode, STATUS[kind] ?? "500", kind).add();
      if (kind !== "cancelled") metrics.counter("smg_worker_errors_total", typeOf(worker), mode, kind).add();
    },
    judged: ({ url }, isFailure) =>
      metrics.counter("smg_worker_cb_outcomes_total", url, isFailure ? "failure" : "success").add(),
    breaker(worker, became) {
      // a breaker that closes was half-open; one that opens may have been
      const from = became === "closed" ? "half_open" : "closed";
      metrics.counter("smg_worker_cb_transitions_total", worker.url, from, became).add();
      onBreaker(worker, became);
    },
    retried: (endpoint) => metrics.counter("smg_worker_retries_total", "regular", endpoint).add(),
    paused: (made, ms) => metrics.histogram("smg_worker_retry_backoff_seconds", String(made)).observe(ms / 1000),
    exhausted: (endpoint) => metrics.counter("smg_worker_retries_exhausted_total", "regular", endpoint).add(),
    budgetDenied: () => metrics.counter("collie_retry_budget_denied_total").add(),
    hedged: (result) => metrics.counter("collie_hedges_total", result).add(),
    fellBack: (from, to) => metrics.counter("collie_fallbacks_total", from, to).add(),
  };
}
