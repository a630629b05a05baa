/** Who is in the fleet: every worker that was told of, from its first try until nothing of it is left. */
import { OverloadedError, WorkerNotFoundError } from "../errors.ts";
import type { Found } from "./door.ts";
import { drained } from "./drain.ts";
import type { HealthStatus } from "./health.ts";
import type { Jobs, JobType } from "./jobs.ts";
import { indexBlockSize } from "./kv/mirror.ts";
import { Life, type Listener, type Surroundings } from "./lifecycle.ts";
import type { WorkerPatch } from "./spec-json.ts";
import {
  BOARD_STATE,
  type LoadedModels,
  type Outside,
  type RegistrySettings,
  type Rows,
  slotsOf,
  type WorkerRecord,
  type WorkerStatus,
} from "./worker-record.ts";
import type { WorkerSpec } from "./worker-spec.ts";
import { urlOf, workerAddress } from "./worker-url.ts";

export class WorkerRegistry {
  /** Those that are in the fleet, by id. */
  private readonly byId = new Map<string, WorkerRecord>();
  private readonly byPlace = new Map<string, WorkerRecord>();
  /** Those that are to take the place of one that still serves, by id. */
  private readonly successors = new Map<string, WorkerRecord>();
  /** Those that were removed and have requests to finish, by id. */
  private readonly leavers = new Map<string, WorkerRecord>();
  /** All of them, and those that are leaving. */
  private readonly all = new Set<WorkerRecord>();

  constructor(
    private readonly rows: Rows,
    private readonly around: Surroundings,
    private readonly models: LoadedModels,
    private readonly jobs: Jobs,
    private readonly settings: RegistrySettings,
    private readonly outside: Outside,
  ) {}

  /** Workers of the fleet, in the order in which they came. */
  list(): readonly WorkerRecord[] {
    return [...this.byId.values()];
  }

  /** Workers that were removed and have not left yet. */
  leaving(): readonly WorkerRecord[] {
    return [...this.leavers.values()];
  }

  /** With those that take over from another one, and those that are leaving. */
  everyone(): Iterable<WorkerRecord> {
    return this.all;
  }

  /** Throws WorkerNotFoundError. */
  get(id: string): WorkerRecord {
    const record = this.byId.get(id);
    if (record === undefined) throw new WorkerNotFoundError(`The worker '${id.slice(0, 100)}' does not exist`);
    return record;
  }

  /** The same with the settings that were told last: it may not serve yet. Throws WorkerNotFoundError. */
  newest(id: string): WorkerRecord {
    return this.successors.get(id) ?? this.get(id);
  }

  /** Who listens at an address. */
  at(url: string): WorkerRecord | undefined {
    return this.byPlace.get(workerAddress(url).place);
  }

  /** A source tells of a worker: a new one, unless somebody listens there already. Throws InvalidRequestError and OverloadedError. */
  own(spec: WorkerSpec, owner: string): WorkerRecord {
    const record = this.at(spec.url);
    if (record === undefined) return this.enter(this.create(crypto.randomUUID(), spec, [owner]), "AddWorker");
    record.owners.add(owner);
    return record;
  }

  /** A source has it no more. */
  disown(url: string, owner: string): void {
    const record = this.at(url);
    if (record?.owners.delete(owner) && record.owners.size === 0) this.remove(record.id);
  }

  /**
   * Other settings for a worker at the same address. One that serves goes on until its replacement is ready. Throws
   * WorkerNotFoundError.
   */
  replace(id: string, spec: WorkerSpec): WorkerRecord {
    const old = this.get(id);
    this.drop(this.successors.get(id));
    const record = this.create(id, spec, old.owners);
    if (old.status !== "ready") {
      this.leave(old);
      return this.enter(record, "UpdateWorker");
    }
    this.successors.set(id, record);
    return this.begin(record, "UpdateWorker");
  }

  /** Changes what can be changed while it serves. Throws WorkerNotFoundError. */
  patch(id: string, patch: WorkerPatch): WorkerRecord {
    const record = this.get(id);
    const labels = patch.labels === undefined ? {} : { labels: { ...record.spec.labels, ...patch.labels } };
    const health = patch.health === undefined ? {} : { health: { ...record.spec.health, ...patch.health } };
    const spec = { ...record.spec, ...patch, ...labels, ...health };
    // every thread has a connection with the old key
    if (patch.apiKey !== undefined && patch.apiKey !== record.spec.apiKey) return this.replace(id, spec);
    for (const one of [record, this.successors.get(id)]) {
      if (one === undefined) continue;
      one.spec = { ...spec, url: one.spec.url };
      one.life.adjust(this.settings.life(spec));
    }
    void this.tell(); // who chooses goes by its priority, cost and labels
    return record;
  }

  /** Takes a worker out, whoever told of it: it gets nothing new, and leaves when it is done. Throws WorkerNotFoundError. */
  remove(id: string): WorkerRecord {
    const record = this.get(id);
    this.jobs.begin(id, "RemoveWorker", urlOf(workerAddress(record.spec.url)));
    this.drop(this.successors.get(id));
    this.byId.delete(id);
    this.byPlace.delete(record.place);
    this.leavers.set(id, record);
    this.leave(record);
    return record;
  }

  close(): void {
    for (const { life } of this.all) life.end();
  }

  private create(id: string, spec: WorkerSpec, owners: Iterable<string>): WorkerRecord {
    const { place } = workerAddress(spec.url);
    let slot: number;
    try {
      slot = this.rows.claim();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new OverloadedError(`There can be no ${error.message}`);
    }
    const life = new Life(
      spec,
      this.settings.life(spec),
      this.around,
      this.listener(() => record),
    );
    const record: WorkerRecord = {
      id,
      slot,
      place,
      spec,
      owners: new Set(owners),
      life,
      found: undefined,
      status: "pending",
    };
    this.all.add(record);
    this.set(record, "pending");
    return record;
  }

  /** Gives a worker that registers its rows of ranks, which throws where there are too many, and its numbers in the prefix index. */
  private settle(record: WorkerRecord, { facts }: Found): void {
    const { members, dpAware = false, blockSize = 0 } = this.settings;
    const ranks = dpAware ? Math.max(1, facts?.dataParallelSize ?? 1) : 1;
    if (ranks > 1 && record.rankSlots === undefined) {
      record.rankSlots = claimEach(
        ranks - 1,
        () => this.rows.claim(),
        (slot) => this.rows.free(slot),
      );
      this.set(record, record.status);
    }
    const told = facts?.blockSize || blockSize;
    if (told > 0) record.blockSize ??= indexBlockSize(told);
    if (members === undefined || record.members !== undefined) return;
    const slots = slotsOf(record);
    try {
      record.members = claimEach(
        slots.length,
        (rank) => members.claim(slots[rank]!, rank),
        (member) => members.release(member),
      );
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.around.log.warn("what a worker caches is not known: there are too many", { worker: record.spec.url });
    }
  }

  private enter(record: WorkerRecord, job: JobType): WorkerRecord {
    this.byId.set(record.id, record);
    this.byPlace.set(record.place, record);
    this.begin(record, job);
    void this.tell();
    return record;
  }

  private begin(record: WorkerRecord, job: JobType): WorkerRecord {
    this.jobs.begin(record.id, job, urlOf(workerAddress(record.spec.url)));
    void record.life.run();
    return record;
  }

  private listener(of: () => WorkerRecord): Listener {
    const { log } = this.around;
    let complained = "";
    return {
      registered: async (found) => {
        const record = of();
        record.found = found;
        this.settle(record, found);
        if (found.kind === "grpc" && !found.models.every((id) => this.models.holds(id)))
          throw new Error("its model was given up in the same moment");
        await this.outside.publish();
      },
      late: ({ models }) => this.release(models),
      troubled: (problem) => {
        const record = of();
        if (record.status === "pending") this.jobs.tell(record.id, problem);
        if (problem === complained) return;
        complained = problem;
        const isNew = record.found === undefined;
        log[isNew ? "warn" : "debug"](isNew ? "worker is not ready yet" : "health check failed", {
          worker: record.spec.url,
          problem,
        });
      },
      changed: (status, problem) => {
        complained = "";
        this.changed(of(), status, problem);
      },
      doubted: () => {
        const record = of();
        log.info("the connection to a worker was lost: it gets nothing new until it has been looked at", {
          worker: record.spec.url,
        });
        this.set(record, "not_ready");
      },
      replaced: () => {
        const record = of();
        log.info("another engine answers at the worker's address: it registers anew", { worker: record.spec.url });
        this.set(record, "not_ready");
        if (this.byId.get(record.id) === record) this.replace(record.id, record.spec);
      },
    };
  }

  private changed(record: WorkerRecord, status: HealthStatus, problem: string | undefined): void {
    const { log } = this.around;
    const worker = record.spec.url;
    const before = record.status;
    this.set(record, status);
    if (status === "ready") {
      const { dialect, models } = record.found ?? {};
      log.info(before === "pending" ? "worker is ready" : "worker is healthy again", {
        worker,
        dialect,
        model: models?.join(", "),
      });
      this.jobs.done(record.id);
      if (this.successors.get(record.id) === record) this.succeed(record);
      if (record.found !== undefined) this.outside.ready(record.found);
      return;
    }
    log.warn(status === "failed" ? "worker has failed" : "worker is unhealthy", { worker, problem });
    if (status === "not_ready") for (const slot of slotsOf(record)) this.outside.lost(slot);
    if (status !== "failed") return;
    if (before === "pending") this.jobs.fail(record.id, problem ?? "it did not become ready in time");
    if (this.successors.get(record.id) === record) this.drop(record);
    else if (this.settings.removesFailed) {
      log.warn("a worker that has failed is removed", { worker });
      this.outside.forgotten(record.owners);
      this.remove(record.id);
    }
  }

  private succeed(record: WorkerRecord): void {
    const old = this.byId.get(record.id);
    this.successors.delete(record.id);
    this.byId.set(record.id, record);
    this.byPlace.set(record.place, record);
    if (old !== undefined) this.leave(old);
  }

  /** Gives up one that was to take over. */
  private drop(successor: WorkerRecord | undefined): void {
    if (successor === undefined) return;
    this.successors.delete(successor.id);
    this.leave(successor);
  }

  /** No new requests; gone when the old ones are, or have had their time. */
  private leave(record: WorkerRecord): void {
    this.set(record, "draining");
    record.life.end();
    this.outside.leaving?.(record);
    for (const member of record.members ?? []) this.settings.members?.clear(member);
    const { log } = this.around;
    this.end(record).catch((error: unknown) =>
      log.error("a worker could not be taken out", { worker: record.spec.url, error }),
    );
  }

  private async end(record: WorkerRecord): Promise<void> {
    const { clock } = this.around;
    const inFlight = () => slotsOf(record).reduce((sum, slot) => sum + this.rows.running(slot), 0);
    const worker = record.spec.url;
    if (record.found !== undefined) {
      this.around.log.info("worker is draining", { worker, requests: inFlight() });
      const left = await drained(clock, inFlight, this.settings.drainMs);
      if (left > 0)
        this.around.log.warn("the worker's time is over: its requests are ended", { worker, requests: left });
    }
    this.all.delete(record);
    this.release(record.found?.models ?? []);
    await this.tell();
    await drained(clock, inFlight); // threads end what is left when they know
    for (const slot of slotsOf(record)) this.rows.free(slot);
    for (const member of record.members ?? []) this.settings.members?.release(member);
    if (this.leavers.get(record.id) === record) this.leavers.delete(record.id);
    this.around.log.info("worker has left", { worker });
    if (!this.byId.has(record.id)) this.jobs.done(record.id);
  }

  /** Models of one that is gone: those that nobody else serves are dropped. */
  private release(models: readonly string[]): void {
    const served = new Set([...this.all].flatMap(({ found }) => found?.models ?? []));
    for (const id of models) if (!served.has(id)) this.models.drop(id);
  }

  private set(record: WorkerRecord, status: WorkerStatus): void {
    record.status = status;
    for (const slot of slotsOf(record)) this.rows.setState(slot, BOARD_STATE[status]);
  }

  private async tell(): Promise<void> {
    const { log } = this.around;
    await this.outside
      .publish()
      .catch((error: unknown) => log.error("the fleet could not be told to all threads", { error }));
  }
}

/** All or none. */
function claimEach(
  count: number,
  claim: (i: number) => number,
  giveBack: (claimed: number) => void,
): readonly number[] {
  const claimed: number[] = [];
  try {
    while (claimed.length < count) claimed.push(claim(claimed.length));
  } catch (error) {
    for (const one of claimed) giveBack(one);
    throw error;
  }
  return claimed;
}
