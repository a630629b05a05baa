/** Results as text and as Markdown rows. */
import type { LoadResult } from "./result.ts";
import { type Percentiles, spread } from "./stats.ts";

interface Column {
  readonly title: string;
  readonly digits: number;
  value(result: LoadResult): number | undefined;
}

const column = (title: string, digits: number, value: (result: LoadResult) => number | undefined): Column => ({
  title,
  digits,
  value,
});

const COLUMNS: readonly Column[] = [
  column("done", 0, (r) => r.done),
  column("errors", 0, (r) => r.errors),
  column("tokens/s", 0, (r) => r.output_token_throughput),
  column("TTFT p50 ms", 2, (r) => r.time_to_first_token_ms?.p50),
  column("TTFT p99 ms", 2, (r) => r.time_to_first_token_ms?.p99),
  column("gap p50 ms", 2, (r) => r.inter_token_latency_ms?.p50),
  column("gap p99 ms", 2, (r) => r.inter_token_latency_ms?.p99),
  column("cores", 2, (r) => r.cores),
  column("CPU us/token", 2, (r) => r.cpu_us_per_token),
  column("net of idle", 2, (r) => r.net_cpu_us_per_token),
  column("CPU ms/request", 3, (r) => r.cpu_ms_per_request),
  column("RSS MB", 0, (r) => r.rss_peak_mb),
];

/** Head of the table that `markdownRow` fills. */
export function markdownHead(): string {
  const titles = ["cell", ...COLUMNS.map((c) => c.title)];
  return `| ${titles.join(" | ")} |\n|${titles.map(() => "---|").join("")}`;
}

/** One row: min / median / max over the repeats. */
export function markdownRow(label: string, results: readonly LoadResult[]): string {
  const cells = COLUMNS.map(({ value, digits }) => {
    const values = results.map(value).filter((v) => v !== undefined);
    if (values.length === 0) return "–";
    const { min, median, max } = spread(values);
    const low = min.toFixed(digits);
    const high = max.toFixed(digits);
    return low === high ? low : `${low} / ${median.toFixed(digits)} / ${high}`;
  });
  return `| ${[label, ...cells].join(" | ")} |`;
}

function percentilesText(p: Percentiles | undefined): string {
  if (p === undefined) return "none";
  const f = (n: number) => n.toFixed(2);
  return `p50 ${f(p.p50)}  p90 ${f(p.p90)}  p99 ${f(p.p99)}  p99.9 ${f(p.p999)}  max ${f(p.max)} ms`;
}

/** A result for people. */
export function resultText(r: LoadResult): string {
  const lines = [
    `${r.done} done, ${r.errors} errors${r.first_error === undefined ? "" : ` (first: ${r.first_error})`} in ${r.wall_s.toFixed(2)} s, seed ${r.seed}`,
    `${r.output_tokens} tokens, ${r.output_token_throughput.toFixed(0)} a second, in ${r.events} events; ${r.request_throughput.toFixed(1)} requests a second`,
    `first token   ${percentilesText(r.time_to_first_token_ms)}`,
    `gap           ${percentilesText(r.inter_token_latency_ms)}`,
    `whole request ${percentilesText(r.request_latency_ms)}`,
  ];
  if (r.send_delay_ms !== undefined)
    lines.push(`sent late     ${percentilesText(r.send_delay_ms)}; ${r.late_sends} by more than 1 ms`);
  if (r.cpu_us_per_token !== undefined)
    lines.push(
      `watched: ${r.cpu_us_per_token.toFixed(2)} us a token (net ${r.net_cpu_us_per_token?.toFixed(2)}), ` +
        `${r.cpu_ms_per_request?.toFixed(3)} ms a request, ${r.cores?.toFixed(2)} cores, ${r.rss_peak_mb?.toFixed(0)} MB`,
    );
  lines.push(`this client: ${r.client_cpu_us_per_token.toFixed(2)} us a token, ${r.client_cores.toFixed(2)} cores`);
  return lines.join("\n");
}
