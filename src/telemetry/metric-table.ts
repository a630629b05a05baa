/** Every metric that is counted as things happen, or read from the fleet at a scrape: the one home of names, labels and help texts. */

export interface MetricSpec {
  readonly type: "counter" | "gauge" | "histogram";
  /** One sentence. */
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[];
}

/** Seconds, as SMG's. */
const DURATIONS = [
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 45, 60, 90, 120, 180, 240, 300, 480, 900,
  1200, 1800, 2700, 3600, 5400, 7200,
];

const ROUTER = ["router_type", "backend_type", "connection_mode", "model", "endpoint"];
const TOKENS = ["router_type", "backend_type", "model", "endpoint"];
const PAIR = ["backend_type", "model", "runtime"];
const ENGINE = ["worker", "model", "dp_rank"];

const counter = (labels: readonly string[], help: string): MetricSpec => ({ type: "counter", labels, help });
const gauge = (labels: readonly string[], help: string): MetricSpec => ({ type: "gauge", labels, help });
const seconds = (labels: readonly string[], help: string): MetricSpec => ({
  type: "histogram",
  labels,
  help,
  buckets: DURATIONS,
});

export const METRICS = {
  smg_router_requests_total: counter([...ROUTER, "streaming"], "Requests for answers or vectors."),
  smg_router_request_duration_seconds: seconds(ROUTER, "Time from a request to the end of its answer."),
  smg_router_request_errors_total: counter(
    [...ROUTER, "error_type"],
    "Requests that failed, before or within the answer.",
  ),
  smg_router_upstream_responses_total: counter(
    ["router_type", "status_code", "error_code"],
    "Ends of tries at workers, as HTTP statuses.",
  ),
  smg_router_ttft_seconds: seconds(TOKENS, "Time from a prompt that is ready to its first token."),
  smg_router_tpot_seconds: seconds(TOKENS, "Time per token behind the first one, by answer."),
  smg_router_generation_duration_seconds: seconds(TOKENS, "Time from a prompt that is ready to its last token."),
  smg_router_tokens_total: counter([...TOKENS, "token_type"], "Tokens of prompts (input) and answers (output)."),
  smg_pd_prefill_duration_seconds: seconds(PAIR, "Time that a prompt takes at the worker that prefills for another."),
  smg_pd_kv_transfer_duration_seconds: seconds(
    PAIR,
    "Time from the end of a prefill to the first token of the worker that decodes, which has fetched the cache by then.",
  ),
  smg_pd_ttft_seconds: seconds(PAIR, "Time from the start of a pair of workers to the first token."),
  smg_pd_kv_connector_mode_total: counter(
    ["mode"],
    "Requests of pairs of vLLM's, by how the cache gets over: nixl, mooncake or passthrough.",
  ),
  smg_pd_bootstrap_failures_total: counter(
    [],
    "Pairs of SGLang's or TokenSpeed's that did not meet, or whose cache did not get over.",
  ),
  smg_pd_kv_transfer_failures_total: counter([], "Pairs of vLLM's whose cache did not get over."),
  smg_worker_pool_size: gauge(["worker_type", "connection_mode", "model"], "Workers of a model."),
  smg_worker_requests_active: gauge(["worker"], "Requests at a worker, of all threads."),
  smg_worker_health: gauge(["worker"], "1 while a worker gets requests."),
  smg_worker_health_checks_total: counter(["worker_type", "result"], "Health checks: success or failure."),
  smg_worker_selection_total: counter(
    ["worker_type", "connection_mode", "model", "policy"],
    "Tries at workers that were chosen.",
  ),
  smg_worker_errors_total: counter(["worker_type", "connection_mode", "error_type"], "Tries at workers that failed."),
  smg_worker_cb_state: gauge(["worker"], "Circuit breaker: 0 closed, 1 open, 2 half-open."),
  smg_worker_cb_transitions_total: counter(["worker", "from", "to"], "Changes of a circuit breaker."),
  smg_worker_cb_outcomes_total: counter(["worker", "outcome"], "What circuit breakers count: success or failure."),
  smg_worker_retries_total: counter(["worker_type", "endpoint"], "Requests that were sent to another worker."),
  smg_worker_retries_exhausted_total: counter(
    ["worker_type", "endpoint"],
    "Requests that failed at every worker they were sent to.",
  ),
  smg_worker_retry_backoff_seconds: seconds(["attempt"], "Pauses before another try."),
  smg_discovery_registrations_total: counter(["source", "result"], "Workers that a source has told of."),
  smg_discovery_deregistrations_total: counter(["source", "reason"], "Workers that a source has no more."),
  smg_discovery_sync_duration_seconds: seconds(["source"], "Time that a list of workers takes to be taken over."),
  smg_discovery_workers_discovered: gauge(["source"], "Workers that a source tells of."),
  smg_engine_running_requests: gauge(ENGINE, "Requests that an engine says it runs (--engine-metrics)."),
  smg_engine_waiting_requests: gauge(ENGINE, "Requests that an engine says wait (--engine-metrics)."),
  smg_engine_token_usage: gauge(ENGINE, "Share of an engine's KV cache in use (--engine-metrics)."),
  smg_engine_gen_throughput: gauge(ENGINE, "Tokens per second of an engine (--engine-metrics)."),
  smg_engine_cache_hit_rate: gauge(ENGINE, "Share of an engine's prompt tokens found in its cache (--engine-metrics)."),
  smg_http_rate_limit_total: counter(
    ["result"],
    "Requests that were let in, and those that were not: allowed or rejected.",
  ),
  collie_worker_queued_tokens: gauge(["worker"], "Tokens of prompts at a worker whose first token has not come."),
  collie_worker_stalls_total: counter(["worker"], "Times that a worker was taken out as its requests did not move."),
  collie_hedges_total: counter(["result"], "Second workers asked beside a slow one: won or lost."),
  collie_fallbacks_total: counter(["from", "to"], "Requests that another model has answered."),
  collie_retry_budget_denied_total: counter([], "Retries that were not made, as there were too many."),
  collie_routing_choices_total: counter(["model", "policy", "branch"], "Choices of a worker, and why it was chosen."),
  collie_routing_seconds: {
    type: "histogram",
    labels: ["policy"],
    help: "Time that a choice of a worker takes.",
    buckets: [1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 1e-3, 1e-2],
  },
  collie_prefix_prompt_tokens_total: counter(["model"], "Tokens of prompts whose engines told how many were cached."),
  collie_prefix_predicted_tokens_total: counter(["model"], "Of these, tokens that the prefix index took to be cached."),
  collie_prefix_actual_tokens_total: counter(["model"], "Of these, tokens that engines said were cached."),
  collie_prefix_index_blocks: gauge([], "Blocks in the prefix index."),
  collie_prefix_index_bytes: gauge([], "Memory that the prefix index uses."),
  collie_prefix_index_evictions_total: counter([], "Blocks thrown out of the prefix index for want of memory."),
  collie_prefix_index_dropped_total: counter([], "Blocks that the prefix index had no room or time for."),
  collie_kv_events_total: counter(
    ["worker", "result"],
    "Blocks in KV events of workers: stored, removed, orphan (of an unknown parent) or ignored; and caches cleared.",
  ),
  collie_kv_event_gaps_total: counter(
    ["worker"],
    "Times that KV events of a worker were missed, and its blocks forgotten.",
  ),
  smg_kv_event_subscription_failures_total: counter(["worker", "reason"], "Subscriptions to KV events that ended."),
  smg_manual_policy_branch_total: counter(["branch"], "What became of routing keys (manual)."),
  smg_manual_policy_cache_entries: gauge([], "Routing keys that stick to workers (manual)."),
  smg_consistent_hashing_policy_branch_total: counter(["branch"], "By what a worker was chosen (consistent_hashing)."),
  smg_prefix_hash_policy_branch_total: counter(["branch"], "How a worker was found on the ring (prefix_hash)."),
  collie_routing_share_up: gauge([], "1 while knowledge is shared with other gateways."),
  collie_routing_shared_blocks_total: counter(
    ["direction"],
    "Blocks told to and by other gateways: sent, received or dropped.",
  ),
  collie_board_bookings: gauge([], "Requests booked at workers, of all threads; 0 when there are none."),
} as const satisfies Readonly<Record<string, MetricSpec>>;

export type MetricName = keyof typeof METRICS;
