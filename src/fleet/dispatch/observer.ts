/** What becomes of requests at workers, counted. */
import { EngineError } from "../../engines/engine.ts";
import type { PolicyName } from "../../routing/policy.ts";
import type { Counter, Histogram, MetricRegistry } from "../../telemetry/registry.ts";
import type { ChoiceNote } from "../lease.ts";
import type { OnBreaker } from "../place.ts";
import { HTTP_DIALECT, type WorkerEntry } from "../snapshot.ts";
import { type ConnectorMode, type PairPart, runtimeNameOf } from "./pair-meter.ts";

/** Told of what becomes of requests. */
export interface DispatchObserver {
  /** A request was given to a worker; `seconds`: what the choice took. */
  chosen(worker: WorkerEntry, choice: ChoiceNote, seconds: number): void;
  /** By what a policy has decided, in SMG's names of branches. */
  branched(policy: PolicyName, branch: string): void;
  /** An engine told how many tokens of a prompt its cache held. */
  cached(worker: WorkerEntry, choice: ChoiceNote, tokens: number, promptTokens: number): void;
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
  /** A part of the work of a pair of workers is done; `worker`: the one that prefills. */
  pairTook(part: PairPart, worker: WorkerEntry, seconds: number): void;
  /** A pair works on a request, one after the other. */
  paired(mode: ConnectorMode): void;
  /** A cache did not get over: of halves that meet, or of those that follow each other. */
  pairFailed(how: "meeting" | "transfer"): void;
  /** Another model has answered in the place of the one that was asked for. */
  fellBack(from: string, to: string): void;
}

/** For whom nobody counts. */
export const UNOBSERVED: DispatchObserver = {
  chosen() {},
  branched() {},
  cached() {},
  tried() {},
  judged() {},
  breaker() {},
  retried() {},
  paused() {},
  exhausted() {},
  budgetDenied() {},
  hedged() {},
  pairTook() {},
  paired() {},
  pairFailed() {},
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
const typeOf = ({ role, facts }: WorkerEntry): string => role ?? facts?.role ?? "regular";

/** SMG counts the branches of some policies. */
const BRANCH_COUNTERS: Partial<Record<PolicyName, BranchCounter>> = {
  manual: "smg_manual_policy_branch_total",
  consistent_hashing: "smg_consistent_hashing_policy_branch_total",
  prefix_hash: "smg_prefix_hash_policy_branch_total",
};
type BranchCounter =
  | "smg_manual_policy_branch_total"
  | "smg_consistent_hashing_policy_branch_total"
  | "smg_prefix_hash_policy_branch_total";

const PAIR_TIMES = {
  prefill: "smg_pd_prefill_duration_seconds",
  transfer: "smg_pd_kv_transfer_duration_seconds",
  "first token": "smg_pd_ttft_seconds",
} as const satisfies Record<PairPart, string>;

/** Counters of a policy at a worker. */
interface OfPolicy {
  readonly name: PolicyName;
  readonly selected: Counter;
  readonly seconds: Histogram;
  readonly branches: Map<ChoiceNote["branch"], Counter>;
}

class CountersOfWorker {
  readonly good: Counter;
  private readonly prompt: Counter;
  private readonly predicted: Counter;
  private readonly actual: Counter;
  private policy: OfPolicy | undefined;

  constructor(
    private readonly metrics: MetricRegistry,
    private readonly worker: WorkerEntry,
  ) {
    const { model } = worker;
    this.good = metrics.counter("smg_router_upstream_responses_total", modeOf(worker), "200", "");
    this.prompt = metrics.counter("collie_prefix_prompt_tokens_total", model);
    this.predicted = metrics.counter("collie_prefix_predicted_tokens_total", model);
    this.actual = metrics.counter("collie_prefix_actual_tokens_total", model);
  }

  chosen(name: PolicyName, branch: ChoiceNote["branch"], seconds: number): void {
    const { metrics, worker } = this;
    if (this.policy?.name !== name) {
      const selected = metrics.counter(
        "smg_worker_selection_total",
        typeOf(worker),
        modeOf(worker),
        worker.model,
        name,
      );
      const took = metrics.histogram("collie_routing_seconds", name);
      this.policy = { name, selected, seconds: took, branches: new Map() };
    }
    const { selected, seconds: took, branches } = this.policy;
    selected.add();
    took.observe(seconds);
    let choices = branches.get(branch);
    if (choices === undefined) {
      choices = metrics.counter("collie_routing_choices_total", worker.model, name, branch);
      branches.set(branch, choices);
    }
    choices.add();
  }

  cached(predicted: number, actual: number, prompt: number): void {
    this.prompt.add(prompt);
    this.predicted.add(predicted);
    this.actual.add(actual);
  }
}

/** Counts in a thread's registry. `onBreaker` is told besides. */
export function countingObserver(metrics: MetricRegistry, onBreaker: OnBreaker): DispatchObserver {
  /** Counters of a worker, found once. */
  const ofWorker = new WeakMap<WorkerEntry, CountersOfWorker>();
  const countersOf = (worker: WorkerEntry): CountersOfWorker => {
    let its = ofWorker.get(worker);
    if (its === undefined) {
      its = new CountersOfWorker(metrics, worker);
      ofWorker.set(worker, its);
    }
    return its;
  };
  return {
    chosen: (worker, { policy, branch }, seconds) => countersOf(worker).chosen(policy, branch, seconds),
    branched(policy, branch) {
      const name = BRANCH_COUNTERS[policy];
      if (name !== undefined) metrics.counter(name, branch).add();
    },
    cached: (worker, { predictedTokens }, tokens, promptTokens) =>
      countersOf(worker).cached(predictedTokens, tokens, promptTokens),
    tried(worker, error) {
      if (error === undefined) {
        countersOf(worker).good.add();
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
    pairTook: (part, worker, seconds) =>
      metrics.histogram(PAIR_TIMES[part], "pd", worker.model, runtimeNameOf(worker)).observe(seconds),
    paired: (mode) => metrics.counter("smg_pd_kv_connector_mode_total", mode).add(),
    pairFailed: (how) =>
      metrics
        .counter(how === "meeting" ? "smg_pd_bootstrap_failures_total" : "smg_pd_kv_transfer_failures_total")
        .add(),
    fellBack: (from, to) => metrics.counter("collie_fallbacks_total", from, to).add(),
  };
}
