/** What one run of a load measured. Names follow AIPerf where it has the figure. */
import type { Percentiles } from "./stats.ts";
import { percentiles } from "./stats.ts";

export interface LoadResult {
  readonly seed: number;
  readonly wall_s: number;
  readonly requests: number;
  /** Requests with status 200, well-formed events, a finish reason, [DONE] and the right number of tokens. */
  readonly done: number;
  readonly errors: number;
  /** Errors by kind. */
  readonly error_kinds: Readonly<Record<string, number>>;
  readonly first_error?: string;
  readonly output_tokens: number;
  readonly prompt_tokens: number;
  /** Events with text. */
  readonly events: number;
  readonly text_bytes: number;
  readonly request_throughput: number;
  readonly output_token_throughput: number;
  /** From the planned arrival (open loop) or the moment of sending (closed loop) to the first event with text. */
  readonly time_to_first_token_ms?: Percentiles;
  /** Between two events with text of one stream; 0 for those that came in one read. */
  readonly inter_token_latency_ms?: Percentiles;
  /** Share of the events that came in one read with the one before: held up by the gateway, the engine or the machine. */
  readonly coalesced_share?: number;
  readonly request_latency_ms?: Percentiles;
  /** Open loop: how much later than planned requests were sent. */
  readonly send_delay_ms?: Percentiles;
  /** Open loop: requests sent more than 1 ms late. */
  readonly late_sends?: number;
  /** CPU of the watched processes. Absent when none was named. */
  readonly cpu_ms?: number;
  readonly cpu_us_per_token?: number;
  readonly cpu_ms_per_request?: number;
  readonly net_cpu_us_per_token?: number;
  readonly net_cpu_ms_per_request?: number;
  readonly cores?: number;
  readonly rss_peak_mb?: number;
  /** The load generator's own CPU. */
  readonly client_cores: number;
  readonly client_cpu_us_per_token: number;
}

/** A request sent more than this after its planned moment counts as late. */
const LATE_MS = 1;

/** Sums of one run. */
export class Tally {
  done = 0;
  outputTokens = 0;
  promptTokens = 0;
  events = 0;
  textBytes = 0;
  firstError: string | undefined;
  readonly errorKinds: Record<string, number> = {};
  readonly ttft: number[] = [];
  readonly total: number[] = [];
  readonly gaps: number[] = [];
  readonly sendDelay: number[] = [];

  get errors(): number {
    return Object.values(this.errorKinds).reduce((sum, n) => sum + n, 0);
  }

  error(kind: string, detail: string): void {
    this.errorKinds[kind] = (this.errorKinds[kind] ?? 0) + 1;
    this.firstError ??= `${kind}: ${detail}`;
  }

  /** Times of a good reply: moments in milliseconds, `from` is when its latency starts. */
  times(from: number, end: number, stamps: readonly number[]): void {
    this.total.push(end - from);
    if (stamps.length > 0) this.ttft.push(stamps[0]! - from);
    for (let i = 1; i < stamps.length; i++) this.gaps.push(stamps[i]! - stamps[i - 1]!);
  }
}

/** What was read of the processes around a run. */
export interface Usage {
  readonly seed: number;
  readonly requests: number;
  readonly wallMs: number;
  readonly clientCpuNs: number;
  /** Absent when no process was watched. */
  readonly watched?: { readonly cpuNs: number; readonly peakBytes: number; readonly idleMsPerSecond: number };
}

/** The result of a run. */
export function loadResult(tally: Tally, usage: Usage): LoadResult {
  const { wallMs, watched } = usage;
  const seconds = wallMs / 1000;
  const tokens = Math.max(1, tally.outputTokens);
  const replies = Math.max(1, tally.done);
  const ttft = percentiles(tally.ttft);
  const gaps = percentiles(tally.gaps);
  const total = percentiles(tally.total);
  const delays = percentiles(tally.sendDelay);
  const netNs = watched === undefined ? 0 : Math.max(0, watched.cpuNs - watched.idleMsPerSecond * 1e6 * seconds);
  return {
    seed: usage.seed,
    wall_s: seconds,
    requests: usage.requests,
    done: tally.done,
    errors: tally.errors,
    error_kinds: tally.errorKinds,
    ...(tally.firstError !== undefined && { first_error: tally.firstError }),
    output_tokens: tally.outputTokens,
    prompt_tokens: tally.promptTokens,
    events: tally.events,
    text_bytes: tally.textBytes,
    request_throughput: tally.done / seconds,
    output_token_throughput: tally.outputTokens / seconds,
    ...(ttft && { time_to_first_token_ms: ttft }),
    ...(gaps && {
      inter_token_latency_ms: gaps,
      coalesced_share: tally.gaps.reduce((sum, ms) => sum + (ms === 0 ? 1 : 0), 0) / tally.gaps.length,
    }),
    ...(total && { request_latency_ms: total }),
    ...(delays && { send_delay_ms: delays, late_sends: tally.sendDelay.filter((ms) => ms > LATE_MS).length }),
    ...(watched && {
      cpu_ms: watched.cpuNs / 1e6,
      cpu_us_per_token: watched.cpuNs / 1e3 / tokens,
      cpu_ms_per_request: watched.cpuNs / 1e6 / replies,
      net_cpu_us_per_token: netNs / 1e3 / tokens,
      net_cpu_ms_per_request: netNs / 1e6 / replies,
      cores: watched.cpuNs / 1e6 / wallMs,
      rss_peak_mb: watched.peakBytes / 1e6,
    }),
    client_cores: usage.clientCpuNs / 1e6 / wallMs,
    client_cpu_us_per_token: usage.clientCpuNs / 1e3 / tokens,
  };
}
