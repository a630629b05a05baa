/** What all engines tell of themselves as metrics. */
import { joinMetrics } from "../telemetry/join-metrics.ts";
import { METRICS } from "../telemetry/metric-table.ts";
import { type MetricFamily, metricsText } from "../telemetry/metrics.ts";
import { Gate } from "./gate.ts";
import { ENGINE_METRICS } from "./metrics.ts";
import type { Answering } from "./worker-record.ts";

const ASK_MS = 5000;
const AT_ONCE = 32;

/**
 * Prometheus' text format: the metrics of HTTP workers as they are, and of gRPC workers, which have none, their loads; all with the label
 * `worker_addr`. A worker that does not tell is left out.
 */
export async function engineMetrics(workers: readonly Answering[]): Promise<string> {
  const gate = new Gate(AT_ONCE);
  const pages = await Promise.all(
    workers.map((worker) =>
      gate.run(async () => ({ from: worker.found.url, text: await pageOf(worker).catch(() => "") })),
    ),
  );
  return joinMetrics(pages, "worker_addr");
}

async function pageOf({ life, found }: Answering): Promise<string> {
  const { contact } = life;
  if (contact === undefined || found.facts?.role === "encode") return ""; // older ones of TokenSpeed end by being asked for loads
  if (contact.page !== undefined) return contact.page("/metrics", ASK_MS);
  const ranks = await contact.loads(ASK_MS);
  const model = found.models[0] ?? "";
  return metricsText(
    ENGINE_METRICS.map(([name, value]): MetricFamily => {
      const samples = ranks.flatMap((rank) => {
        const told = value(rank);
        return told === undefined ? [] : [{ labels: { model, dp_rank: String(rank.rank) }, value: told }];
      });
      return { name, ...METRICS[name], samples };
    }),
  );
}
