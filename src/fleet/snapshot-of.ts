/** The fleet as serving threads are told of it. */
import type { WorkerRegistry } from "./registry.ts";
import type { FleetSnapshot, HttpModelEntry, ModelEntry, TokenizerEntry, WorkerEntry } from "./snapshot.ts";
import type { WorkerRecord } from "./worker-record.ts";

/** A worker that has registered, once for each model that it serves. */
export function workerEntries({ id, slot, spec, found }: WorkerRecord): readonly WorkerEntry[] {
  if (found === undefined) return [];
  const { url, kind, dialect, facts, waitsForReasoning, models } = found;
  const key = kind === "http" && spec.apiKey !== undefined ? { apiKey: spec.apiKey } : {};
  return models.map((model) => ({ id, slot, url, dialect, model, facts, waitsForReasoning, ...key }));
}

/** Those that do a part of the work only get no requests of their own. */
const isWhole = ({ spec, found }: WorkerRecord): boolean =>
  (spec.workerType ?? found?.facts?.role ?? "regular") === "regular";

export function snapshotOf(
  registry: WorkerRegistry,
  models: readonly ModelEntry[],
  tokenizers: readonly TokenizerEntry[],
): FleetSnapshot {
  const everyone = [...registry.everyone()];
  const inFleet = registry.list();
  return {
    workers: everyone.filter(isWhole).flatMap(workerEntries),
    expected: inFleet.length,
    starting: inFleet.filter(({ found, status }) => found === undefined && status === "pending").length,
    models,
    httpModels: httpModels(everyone),
    tokenizers,
  };
}

/** Each model once, though several workers serve it: as the first of them tells, with the names of all. */
function httpModels(workers: readonly WorkerRecord[]): readonly HttpModelEntry[] {
  const byId = new Map<string, HttpModelEntry>();
  for (const model of workers.flatMap(({ found }) => found?.httpModels ?? [])) {
    const known = byId.get(model.id) ?? model;
    byId.set(model.id, { ...known, aliases: [...new Set([...known.aliases, ...model.aliases])] });
  }
  return [...byId.values()];
}
