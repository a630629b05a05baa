/** The fleet as serving threads are told of it. */
import type { WorkerRegistry } from "./registry.ts";
import type { FleetSnapshot, HttpModelEntry, ModelEntry, TokenizerEntry, WorkerEntry } from "./snapshot.ts";
import type { WorkerRecord } from "./worker-record.ts";
import type { WorkerSpec } from "./worker-spec.ts";

/** A worker that has registered, once for each model that it serves and for each rank that is chosen by itself. */
export function workerEntries(record: WorkerRecord): readonly WorkerEntry[] {
  const { id, slot, spec, found, members, rankSlots = [], blockSize, sendsEvents } = record;
  if (found === undefined) return [];
  const { url, kind, dialect, facts, waitsForReasoning, cacheNames } = found;
  const models = found.models.map((model) => ({ model, cacheName: cacheNames?.get(model) }));
  const worker = {
    id,
    slot,
    url,
    dialect,
    facts,
    waitsForReasoning,
    role: roleOf(record),
    member: members?.[0],
    blockSize,
    sendsEvents,
    priority: spec.priority,
    cost: spec.cost,
    bootstrapPort: spec.bootstrapPort,
    labels: { ...facts?.labels, ...connectorOf(spec), ...spec.labels },
    ...(kind === "http" && spec.apiKey !== undefined && { apiKey: spec.apiKey }),
  };
  if (rankSlots.length === 0) return models.map((model) => ({ ...worker, ...model }));
  const ranks = [slot, ...rankSlots].map((its, rank) => ({
    ...worker,
    id: rank === 0 ? id : `${id}@${rank}`,
    slot: its,
    home: slot,
    rank,
    member: members?.[rank],
  }));
  return models.flatMap((model) => ranks.map((rank) => ({ ...rank, ...model })));
}

/** What SMG's API takes beside the labels that engines tell the same by. */
const CONNECTOR = ["kv_connector", "kv_role", "kv_engine_id"] as const;

const connectorOf = ({ further = {} }: WorkerSpec): Readonly<Record<string, string>> =>
  Object.fromEntries(
    CONNECTOR.flatMap((name) => {
      const value = further[name];
      return typeof value === "string" ? [[name, value]] : [];
    }),
  );

const roleOf = ({ spec, found }: WorkerRecord): NonNullable<WorkerEntry["role"]> =>
  spec.workerType ?? found?.facts?.role ?? "regular";

export function snapshotOf(
  registry: WorkerRegistry,
  models: readonly ModelEntry[],
  tokenizers: readonly TokenizerEntry[],
): FleetSnapshot {
  const everyone = [...registry.everyone()];
  const inFleet = registry.list();
  return {
    workers: everyone.flatMap(workerEntries),
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
