/** Workers as SMG's workers' API shows them. */
import type { WorkerInfo } from "../../fleet/admin.ts";
import { specJson } from "../../fleet/spec-json.ts";

/** https://github.com/smg-project/smg: `WorkerInfo`; what is not set is left out. */
export function workerObject(info: WorkerInfo): Readonly<Record<string, unknown>> {
  const { id, spec, url, kind, dialect, facts, models, status, load, job } = info;
  const [model] = models;
  return {
    id,
    ...specJson(spec),
    url,
    models: modelCards(info),
    worker_type: roleOf(info),
    connection_mode: kind ?? (url.startsWith("grpc") ? "grpc" : "http"),
    runtime_type: spec.runtime ?? (kind === "grpc" ? dialect : facts?.labels["runtime_type"]) ?? "unspecified",
    labels: { ...facts?.labels, ...spec.labels },
    ...(model !== undefined && { model_id: model }),
    is_healthy: status === "ready",
    status,
    load,
    ...(job !== undefined && { job_status: job }),
  };
}

function modelCards({ spec, models, facts }: WorkerInfo): readonly object[] {
  const [, ...aliases] = spec.models ?? [];
  const context = facts?.contextLength || undefined;
  return models.map((id) => ({
    id,
    ...(aliases.length > 0 && { aliases }),
    ...(context !== undefined && models.length === 1 && { context_length: context }),
  }));
}

const roleOf = ({ spec, facts }: WorkerInfo): string => spec.workerType ?? facts?.role ?? "regular";

/** Encode workers count in the total only, as with SMG. */
export function workerList(workers: readonly WorkerInfo[]): object {
  const count = (role: string) => workers.filter((worker) => roleOf(worker) === role).length;
  return {
    workers: workers.map(workerObject),
    total: workers.length,
    stats: { prefill_count: count("prefill"), decode_count: count("decode"), regular_count: count("regular") },
  };
}
