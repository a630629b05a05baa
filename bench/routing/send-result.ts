import type { Percentiles } from "../loadgen/stats.ts";

/** What came of a stream. Times count from the planned arrival. */
export interface SendResult {
  readonly requests: number;
  readonly errors: number;
  readonly error_kinds: Readonly<Record<string, number>>;
  readonly first_error?: string;
  readonly ttft_mean_ms: number;
  /** Absent when nothing was answered. */
  readonly ttft_ms?: Percentiles;
  /** Of the requests that came in each quarter of the time. */
  readonly ttft_mean_ms_by_quarter: readonly number[];
  readonly latency_mean_ms: number;
  readonly time_per_output_token_ms: number;
  /** Requests that were sent more than 5 ms late. */
  readonly late_sends: number;
  readonly send_delay_p99_ms: number;
  readonly client_cpu_ms: number;
}
