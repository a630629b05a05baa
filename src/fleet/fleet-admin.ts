/** Operators' questions, answered from the registry and by the workers themselves. */
import type { Outcome } from "../engines/admin.ts";
import { InvalidRequestError, WorkerExistsError, WorkerNotFoundError } from "../errors.ts";
import type { FleetAdmin, WorkerInfo, WorkerOutcome } from "./admin.ts";
import type { Contact } from "./door.ts";
import { engineMetrics } from "./engine-metrics.ts";
import type { Jobs } from "./jobs.ts";
import type { WorkerRegistry } from "./registry.ts";
import { told } from "./told.ts";
import { type Answering, slotsOf, type WorkerRecord } from "./worker-record.ts";
import { urlOf, workerAddress } from "./worker-url.ts";

/** The workers' API as an owner of workers. */
const OWNER = "api";
const ASK_MS = 10_000;
/** Starting a profiler, and writing what it saw. */
const PROFILE_MS = 120_000;

export function fleetAdmin(registry: WorkerRegistry, board: { running(slot: number): number }, jobs: Jobs): FleetAdmin {
  const infoOf = (record: WorkerRecord): WorkerInfo => {
    const { id, spec, found, status } = record;
    const { apiKey: _, ...shown } = spec;
    return {
      id,
      spec: shown,
      url: found?.url ?? urlOf(workerAddress(spec.url)),
      kind: found?.kind,
      dialect: found?.dialect,
      facts: found?.facts,
      models: found?.models ?? spec.models?.slice(0, 1) ?? [],
      status,
      load: slotsOf(record).reduce((sum, slot) => sum + board.running(slot), 0),
      job: jobs.of(id),
    };
  };

  const leaver = (id: string) => registry.leaving().find((record) => record.id === id);

  /** Workers that have registered and are not leaving: of one address, or all. */
  function answering(url?: string): readonly Answering[] {
    const all = registry.list().filter((record): record is Answering => record.found !== undefined);
    if (url === undefined) return all;
    const { place } = workerAddress(url);
    return all.filter((record) => record.place === place);
  }

  /** Asks each; one that cannot be asked has failed, too. */
  function askEach(
    workers: readonly Answering[],
    ask: (contact: Contact) => Promise<Outcome>,
  ): Promise<readonly WorkerOutcome[]> {
    return Promise.all(
      workers.map(async ({ life, found: { url, kind } }) => {
        try {
          if (life.contact === undefined) throw new Error("it is not connected");
          const { success, message } = await ask(life.contact);
          return success ? { url, kind } : { url, kind, error: message || "the engine refused" };
        } catch (error) {
          return { url, kind, error: error instanceof Error ? error.message : String(error) };
        }
      }),
    );
  }

  function profiled(url: string | undefined): readonly Answering[] {
    const workers = answering(url);
    if (workers.length > 0) return workers;
    throw new WorkerNotFoundError(url === undefined ? "There is no worker" : "No worker has this address");
  }

  return {
    async listWorkers(model) {
      const all = [...registry.list(), ...registry.leaving()].map(infoOf);
      return model === undefined ? all : all.filter(({ models }) => models.includes(model));
    },
    async worker(id) {
      return infoOf(leaver(id) ?? registry.get(id));
    },
    async addWorker(spec) {
      if (registry.at(spec.url) !== undefined)
        throw new WorkerExistsError("There is a worker with this address already", { param: "url" });
      jobs.admit();
      return infoOf(registry.own(spec, OWNER));
    },
    async replaceWorker(id, spec, keyless = false) {
      const { place } = registry.get(id);
      if (workerAddress(spec.url).place !== place)
        throw new InvalidRequestError("A worker's address cannot be changed: add another worker", { param: "url" });
      jobs.admit();
      const apiKey = spec.apiKey ?? (keyless ? undefined : registry.newest(id).spec.apiKey);
      return infoOf(registry.replace(id, { ...spec, ...(apiKey !== undefined && { apiKey }) }));
    },
    async patchWorker(id, patch) {
      return infoOf(registry.patch(id, patch));
    },
    async removeWorker(id) {
      return infoOf(leaver(id) ?? registry.remove(id));
    },
    loads() {
      return Promise.all(
        answering().map(async ({ life, found: { url, facts } }) => {
          if (facts?.role === "encode") return { url, ranks: undefined }; // older ones of TokenSpeed end by being asked
          return { url, ranks: await life.contact?.loads(ASK_MS).catch(() => undefined) };
        }),
      );
    },
    engineMetrics: () => engineMetrics(answering()),
    told: (of, model) => told(answering(), of, model),
    async flushCache(timeoutSecs) {
      return askEach(answering(), (contact) => contact.flushCache(timeoutSecs, timeoutSecs * 1000 + ASK_MS));
    },
    async startProfile(ask, url) {
      return askEach(profiled(url), (contact) => contact.startProfile(ask, PROFILE_MS));
    },
    async stopProfile(url) {
      return askEach(profiled(url), (contact) => contact.stopProfile(PROFILE_MS));
    },
  };
}
