/** One worker from its first try to its end. */
import type { Logger } from "../telemetry/log.ts";
import type { MetricRegistry } from "../telemetry/registry.ts";
import { type Clock, sleep } from "./clock.ts";
import type { Contact, Door, Found } from "./door.ts";
import type { Gate } from "./gate.ts";
import { Health, type HealthStatus } from "./health.ts";
import type { LifeSettings } from "./life-settings.ts";
import type { WorkerSpec } from "./worker-spec.ts";

/** First pause between two tries to register; each is longer by half. */
const FIRST_PAUSE_MS = 100;
const LONGER = 1.5;
/** A check of a worker with failures comes after this at the latest, so that it leaves and returns soon. */
const TROUBLED_CHECK_MS = 5000;
/** A connection that is lost sooner than this after one whose worker was the same does not take it out: some are closed often. */
const FLAPPING_MS = 10_000;
/** Longest time that a worker whose requests did not move is kept out after it answers again, if that happens over and over. */
const LONGEST_HOLD_MS = 600_000;

/** What a life needs of the rest of the fleet. */
export interface Surroundings {
  readonly clock: Clock;
  readonly door: Door;
  /** Counts the checks. */
  readonly metrics?: MetricRegistry | undefined;
  /** Tries and checks of all workers go through it. */
  readonly gate: Gate;
  readonly log: Logger;
  /** 0 to 1. */
  readonly random: () => number;
}

/** What is told of a life, in order. */
export interface Listener {
  /** It answers, and is about to be ready: resolves once every thread knows it. A worker that registers anew may be another one. */
  registered(found: Found): Promise<void>;
  /** It answered when its life was over already: what was loaded for it is of no use. */
  late(found: Found): void;
  /** Its status changed; `problem` is why, for the worse. */
  changed(status: HealthStatus, problem?: string): void;
  /** The connection to it was lost, so another one may answer by now: it is out until it has been looked at. */
  doubted(): void;
  /** A try failed. */
  troubled(problem: string): void;
  /** Another engine, or one with other settings, answers at the address: this life is over. */
  replaced(): void;
}

export class Life {
  readonly health: Health;
  private readonly ending = new AbortController();
  private contacts: Contact | undefined;
  private nudge: (() => void) | undefined;
  /** Stalls without progress in between, and when the last one may be forgiven. */
  private stalls = 0;
  private heldUntil = 0;
  /** Its connection was lost: the pause before the next look, until one has shown who it is. */
  private doubtPauseMs: number | undefined;
  private lostAt = Number.NEGATIVE_INFINITY;
  private callOff: (() => void) | undefined;

  constructor(
    private readonly spec: WorkerSpec,
    private settings: LifeSettings,
    private readonly around: Surroundings,
    private readonly listener: Listener,
  ) {
    this.health = new Health(settings.thresholds);
  }

  /** Control's way to it, once it has registered. */
  get contact(): Contact | undefined {
    return this.contacts;
  }

  get isAlive(): boolean {
    return !this.ending.signal.aborted;
  }

  /** Nobody checks it: then nobody could take it in again, either. */
  get isUnwatched(): boolean {
    return this.settings.isUnwatched;
  }

  /** Lives until `end`. Never rejects. */
  async run(): Promise<void> {
    try {
      const found = await this.start();
      if (found !== undefined && !this.settings.isUnwatched) await this.watch(found);
    } catch (error) {
      this.around.log.error("a worker's task failed", { worker: this.spec.url, error });
    }
  }

  /** Other settings, from the next check on. */
  adjust(settings: LifeSettings): void {
    this.settings = settings;
    this.health.thresholds = settings.thresholds;
  }

  end(): void {
    this.ending.abort();
    this.callOff?.();
    this.contacts?.close();
  }

  /** Has it checked now, on a connection of its own. Resolves to what is wrong; undefined: nothing. */
  async examine(): Promise<string | undefined> {
    const { contacts, ending } = this;
    if (contacts === undefined || ending.signal.aborted) return undefined;
    this.contacts = undefined; // the old connection may be the trouble
    contacts.close();
    const fresh = this.open(this.found);
    return this.check(fresh);
  }

  /** Has it checked soon: something may be wrong with it. */
  look(): void {
    this.nudge?.();
  }

  /** Its requests do not move: takes it out, the longer the more often that happened. True if it was in. */
  stall(problem: string): boolean {
    const hold = Math.min(this.settings.stallMs * 2 ** this.stalls++, LONGEST_HOLD_MS);
    this.heldUntil = this.around.clock.now() + hold;
    const was = this.health.out();
    if (was) this.listener.changed(this.health.status, problem);
    this.nudge?.();
    return was;
  }

  /** Something came of it: earlier stalls are forgotten. */
  moved(): void {
    this.stalls = 0;
    this.heldUntil = 0;
  }

  /**
   * The connection that is kept to it is over: an engine that starts anew may be another one, and is to get nothing that was meant for
   * the one before.
   */
  private lost(): void {
    if (!this.isAlive || this.settings.isUnwatched || this.doubtPauseMs !== undefined) return;
    const now = this.around.clock.now();
    const isFlapping = now - this.lostAt < FLAPPING_MS;
    this.lostAt = now;
    if (isFlapping) {
      this.callOff ??= this.around.clock.after(TROUBLED_CHECK_MS, () => {
        this.callOff = undefined;
        this.look();
      });
    } else this.doubt();
  }

  private doubt(): void {
    if (!this.health.out()) return;
    this.doubtPauseMs = 0;
    this.listener.doubted();
    this.look();
  }

  private found: Found | undefined;

  private open(found: Found | undefined): Contact {
    if (found === undefined) throw new Error("a worker that never registered has no contact");
    this.contacts ??= this.around.door.contact(this.spec, found, () => this.lost());
    return this.contacts;
  }

  /** Tries until it has registered; undefined: it ended before. */
  private async start(): Promise<Found | undefined> {
    const { clock, door, gate } = this.around;
    const { signal } = this.ending;
    const { startupTimeoutMs, startupPauseMs, timeoutMs } = this.settings;
    const began = clock.now();
    for (let pause = FIRST_PAUSE_MS; !signal.aborted; pause = Math.min(pause * LONGER, startupPauseMs)) {
      try {
        const found = await gate.run(() => door.register(this.spec, timeoutMs, signal));
        if (signal.aborted) {
          this.listener.late(found);
          return undefined;
        }
        await this.listener.registered(found);
        if (signal.aborted) return undefined;
        this.found = found;
        this.open(found);
        this.health.registered();
        this.listener.changed(this.health.status);
        return found;
      } catch (error) {
        if (signal.aborted) return undefined;
        const problem = messageOf(error);
        this.listener.troubled(problem);
        if (clock.now() - began > startupTimeoutMs && this.health.overdue())
          this.listener.changed(this.health.status, problem);
      }
      await sleep(clock, pause, signal);
    }
    return undefined;
  }

  private async watch(found: Found): Promise<void> {
    const { signal } = this.ending;
    // that opens the connection whose loss is told
    const first = found.kind === "grpc" ? await this.identity(found) : undefined;
    if (signal.aborted) return;
    if (isOther(first, found)) return this.listener.replaced();
    if (found.kind === "grpc" && first === undefined) this.doubt(); // it went away meanwhile: there is no connection to lose
    while (!signal.aborted) {
      await this.rest(this.pauseMs());
      if (signal.aborted) return;
      const problem = await this.check(this.open(found));
      const identity = problem === undefined && !signal.aborted ? await this.identity(found) : undefined;
      if (signal.aborted) return;
      const type = found.facts?.role ?? "regular";
      const result = problem === undefined ? "success" : "failure";
      this.around.metrics?.counter("smg_worker_health_checks_total", type, result).add();
      if (isOther(identity, found)) return this.listener.replaced();
      if (problem !== undefined) this.bad(problem);
      else if (identity === undefined && this.doubtPauseMs !== undefined) this.bad("it does not tell who it is");
      else this.good();
    }
  }

  private pauseMs(): number {
    const { intervalMs } = this.settings;
    const usual = this.health.isCalm ? intervalMs : Math.min(intervalMs, TROUBLED_CHECK_MS);
    return Math.min(usual, this.doubtPauseMs ?? usual) * (0.9 + 0.2 * this.around.random());
  }

  private good(): void {
    const wasDoubted = this.doubtPauseMs !== undefined;
    this.doubtPauseMs = undefined;
    if (this.around.clock.now() < this.heldUntil) return;
    if (wasDoubted) this.health.registered();
    if (this.health.good() || wasDoubted) this.listener.changed(this.health.status);
  }

  private bad(problem: string): void {
    const pause = this.doubtPauseMs;
    if (pause !== undefined && pause < TROUBLED_CHECK_MS) {
      // looks that follow each other so soon do not count
      this.doubtPauseMs = Math.min(Math.max(FIRST_PAUSE_MS, pause * LONGER), TROUBLED_CHECK_MS);
      this.lostAt = Number.NEGATIVE_INFINITY;
      if (pause === 0) this.listener.changed(this.health.status, problem);
      else this.listener.troubled(problem);
    } else if (this.health.bad()) this.listener.changed(this.health.status, problem);
    else this.listener.troubled(problem);
  }

  private async check(contact: Contact): Promise<string | undefined> {
    try {
      await this.around.gate.run(() => contact.check(this.settings.timeoutMs));
      return undefined;
    } catch (error) {
      const now = this.contacts;
      return now === undefined || now === contact ? messageOf(error) : this.check(now); // an examination closed it
    }
  }

  /** What it tells of itself; undefined: nothing. */
  private async identity(found: Found): Promise<string | undefined> {
    try {
      return await this.open(found).identity(this.settings.timeoutMs);
    } catch {
      return undefined;
    }
  }

  /** Waits, but for what `nudge` cuts short. */
  private rest(ms: number): Promise<void> {
    const cut = new AbortController();
    const end = () => cut.abort();
    const { signal } = this.ending;
    this.nudge = end;
    signal.addEventListener("abort", end, { once: true });
    return sleep(this.around.clock, ms, cut.signal).finally(() => {
      signal.removeEventListener("abort", end);
      this.nudge = undefined;
    });
  }
}

/** Whether the engine that answers is not the one that registered. One that does not tell is the same. */
const isOther = (identity: string | undefined, found: Found): boolean =>
  identity !== undefined && identity !== found.identity;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
