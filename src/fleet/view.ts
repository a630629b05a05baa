import type { Engine } from "../engines/engine.ts";
import { Feature } from "../engines/features.ts";
import type { HttpEngine } from "../engines/http/engine.ts";
import { ModelNotFoundError, NotOfferedError, NoWorkersError, TargetWorkerError } from "../errors.ts";
import type { RouteAsk } from "../routing/ask.ts";
import { namedIn } from "../routing/policies/target.ts";
import { type FleetBoard, WorkerState } from "../threads/fleet-board.ts";
import type { RetryBudget } from "../threads/limit-board.ts";
import { type Clock, systemClock } from "./clock.ts";
import { type Crew, Crews, type Legs, seatsOf } from "./crew.ts";
import { type DispatchObserver, UNOBSERVED } from "./dispatch/observer.ts";
import { DEFAULT_POLICY, type DispatchPolicy } from "./dispatch/policy.ts";
import { Pulse } from "./dispatch/pulse.ts";
import { EnginePool } from "./engine-pool.ts";
import type { RouteReport } from "./explain.ts";
import type { HttpLease, HttpLeasePair, Lease, LeaseAsk, LeasePair } from "./lease.ts";
import { LostWorkers } from "./lost-workers.ts";
import { countLate, type Judgement, type Surroundings } from "./place.ts";
import { ownRouting } from "./routing.ts";
import { httpModels, type Model, type Named, namesOf } from "./served-models.ts";
import {
  emptyFleet,
  engineKind,
  type FleetSnapshot,
  HTTP_DIALECT,
  type HttpModelEntry,
  homeOf,
  type ModelEntry,
  type TokenizerEntry,
  type WorkerEntry,
} from "./snapshot.ts";
import { type EngineFactory, noHttpEngines, UNLIMITED_RETRIES, type ViewOptions } from "./view-options.ts";
import { type NamedTokenizer, NO_CHECKS, ViewTokenizers } from "./view-tokenizers.ts";
import { WorkerChoice } from "./worker-choice.ts";

export type { Model } from "./served-models.ts";
export type { NamedTokenizer } from "./view-tokenizers.ts";

/** How requests to a model are served: as token ids, passed on as they came, or by workers of both kinds. */
export type Way = "tokens" | "http" | "both";

const AVOID_MS = 1000;

/** The fleet as one serving thread sees it: its own engine connections and tokenizers over the shared board. */
export class FleetView {
  private snapshot: FleetSnapshot = emptyFleet;
  private names = new Map<string, Named>();
  private readonly engines: EnginePool<Engine>;
  private readonly httpEngines: EnginePool<HttpEngine>;
  /** What all threads together may retry. */
  readonly retryBudget: RetryBudget;
  readonly policy: DispatchPolicy;
  readonly observer: DispatchObserver;
  readonly clock: Clock;
  private readonly stopClock: () => void;
  private readonly tokenizers: ViewTokenizers;
  private readonly crews: Crews;
  private readonly around: Surroundings;
  private readonly choice: WorkerChoice;
  /** A name that stands for another model here. */
  private readonly redirected: readonly [name: string, other: string] | undefined = undefined;
  /** Requests that have not begun, for when their worker turns out not to move. */
  readonly lost = new LostWorkers();

  constructor(
    private readonly board: FleetBoard,
    thread: number,
    createEngine: EngineFactory,
    {
      createHttpEngine = noHttpEngines,
      cacheChecks = NO_CHECKS,
      policy = DEFAULT_POLICY,
      observer = UNOBSERVED,
      clock,
      retryBudget = UNLIMITED_RETRIES,
      routing = ownRouting(),
      onBrokenTemplate = () => {},
    }: ViewOptions = {},
  ) {
    this.crews = new Crews(routing);
    this.tokenizers = new ViewTokenizers(cacheChecks, onBrokenTemplate);
    this.retryBudget = retryBudget;
    this.policy = policy;
    this.observer = observer;
    const own = systemClock();
    this.clock = clock ?? own;
    this.stopClock = () => own.close();
    this.around = { board, thread, clock: this.clock, pulse: new Pulse(this.clock), observer };
    this.choice = new WorkerChoice(this.around, routing);
    this.engines = new EnginePool(createEngine);
    this.httpEngines = new EnginePool(createHttpEngine);
  }

  /** Takes over a new state of the fleet. Connections and tokenizers of what stays are kept. */
  apply(snapshot: FleetSnapshot): void {
    const before = new Map([...this.names.values()].map(({ id, tokens }) => [id, tokens]));
    this.snapshot = snapshot;
    this.names = namesOf(snapshot, this.crews, (entry) => this.tokenizers.loaded(entry, before.get(entry.id)));
    this.engines.keep(snapshot.workers);
    this.httpEngines.keep(snapshot.workers);
  }

  /** Models whose prompts are made here, each once. */
  list(): readonly ModelEntry[] {
    return this.snapshot.models;
  }

  /** Models that clients can ask for, each once, whoever serves them. */
  listAll(): readonly (ModelEntry | HttpModelEntry)[] {
    const { models } = this.snapshot;
    return [...models, ...httpModels(this.snapshot).filter(({ id }) => !models.some((model) => model.id === id))];
  }

  /** The same fleet, but that the model `other` answers to `name`. */
  standingIn(name: string, other: string): FleetView {
    return Object.create(this, { redirected: { value: [name, other] } }) as FleetView;
  }

  /** The id of the model of a name; the name itself where nobody has it. */
  idOf(name: string): string {
    return this.named(name)?.id ?? name;
  }

  private named(name: string): Named | undefined {
    const { redirected } = this;
    return this.names.get(redirected?.[0] === name ? redirected[1] : name);
  }

  /** How a model is served; undefined for a name that nobody has. */
  way(name: string): Way | undefined {
    const its = this.named(name);
    if (its?.tokens !== undefined) return its.http === undefined ? "tokens" : "both";
    return its && "http";
  }

  /**
   * A model by its name or alias. While workers are still starting, an unknown one may be theirs: then it is unavailable. Throws
   * NoWorkersError, ModelNotFoundError, and NotOfferedError for a model that HTTP workers alone serve.
   */
  model(name: string): Model {
    const its = this.named(name);
    if (its === undefined) throw this.unknown(name);
    if (its.tokens === undefined)
      throw new NotOfferedError(
        `The model '${its.id}' is served over HTTP only: use /v1/chat/completions, /v1/completions, /v1/embeddings or /v1/rerank`,
        { param: "model" },
      );
    return its.tokens;
  }

  /** What is shown of a model, whoever serves it. Throws as `model`, but for NotOfferedError. */
  entry(name: string): ModelEntry | HttpModelEntry {
    const its = this.named(name);
    const entry = its?.tokens?.entry ?? its?.http;
    if (entry === undefined) throw this.unknown(name);
    return entry;
  }

  /** Of a model with workers of both kinds: the kind of the one that is named, else of the one that the policy would choose of all. */
  kindOfNext(name: string, route: RouteAsk): "tokens" | "http" {
    const its = this.named(name);
    if (its === undefined) return "tokens";
    const { tokenWorkers, httpWorkers } = its;
    const named =
      route.target === undefined
        ? undefined
        : namedIn([...seatsOf(tokenWorkers), ...seatsOf(httpWorkers)], route.target)?.worker;
    // a worker that nobody has is for the lease to refuse
    const next = named ?? this.choice.next(this.allOf(its), { ...route, target: undefined });
    return next?.dialect === HTTP_DIALECT ? "http" : "tokens";
  }

  /** All to whom a prompt may go, of both kinds. */
  private allOf({ tokenWorkers, httpWorkers }: Named): Crew {
    return this.crews.both(this.firstOf(tokenWorkers), this.firstOf(httpWorkers));
  }

  private firstOf(legs: Legs): Crew {
    return this.areSplit(legs) ? legs.prefill : legs.regular;
  }

  private unknown(name: string): NoWorkersError | ModelNotFoundError {
    const { workers, expected, starting = expected - workers.length } = this.snapshot;
    return starting > 0 ? new NoWorkersError(name) : new ModelNotFoundError(name);
  }

  /** Tokenizers that were added, in whatever state. */
  addedTokenizers(): readonly TokenizerEntry[] {
    return this.snapshot.tokenizers;
  }

  /** A tokenizer by the name or alias of its model, or by the name or id it was added under. Throws ModelNotFoundError. */
  tokenizer(name: string): NamedTokenizer {
    const added = this.snapshot.tokenizers.find((entry) => entry.name === name || entry.id === name);
    if (added === undefined) {
      const { entry, tokenizer, template } = this.model(name);
      return { id: entry.id, name: entry.id, handle: entry.tokenizer, tokenizer, template };
    }
    return this.tokenizers.added(name, added);
  }

  /**
   * The tokenizer by which the prompts of a model's HTTP workers are looked up: the model's own, where others serve it too, or one that was
   * added under its name. Undefined where nobody goes by it: there is no choice, or the policy looks at no tokens.
   */
  routingTokenizer(name: string): NamedTokenizer | undefined {
    const its = this.named(name);
    if (its === undefined) return undefined;
    const crew = this.allOf(its);
    if (crew.seats.length < 2 || !crew.policy.needsTokens) return undefined;
    const added = this.snapshot.tokenizers.find((entry) => entry.name === its.id && entry.state.status === "ready");
    return its.tokens !== undefined || added !== undefined ? this.tokenizer(its.id) : undefined;
  }

  readyWorkers(): number {
    const slots = new Set(this.snapshot.workers.map(homeOf)); // one that serves several models is one
    return [...slots].filter((slot) => this.board.state(slot) === WorkerState.ready).length;
  }

  get workerCount(): number {
    return this.snapshot.expected;
  }

  /**
   * Books a place at a worker that can do what is asked, chosen by the policy of the model. Workers that could not be reached a moment ago
   * come last. Throws UnsupportedError where no worker of the model ever can, NoWorkersError where none can now.
   */
  lease(model: Model, ask: LeaseAsk = {}): Lease {
    return this.bookWhole(this.legsOf(model), ask, this.engines);
  }

  /** The same at a worker that runs nothing. */
  leaseIdle(model: Model, ask: LeaseAsk): Lease {
    return this.lease(model, { ...ask, isIdle: true });
  }

  /**
   * Requests to the model go to a worker that prefills and another that decodes. Where it has workers that do the whole as well, these
   * take over while one of the parts has no worker that is ready.
   */
  isSplit(model: Model): boolean {
    return this.areSplit(this.legsOf(model));
  }

  /**
   * Books a place for either part of the work; `tried` may name workers of both. Among workers that decode and have as little to do, one
   * of the same zone as the other (their label `zone`) comes first. Throws as `lease`, and then nothing is booked.
   */
  leasePair(model: Model, ask: LeaseAsk = {}): LeasePair {
    return this.bookPair(this.legsOf(model), ask, this.engines);
  }

  private areSplit({ regular, prefill, decode }: Legs): boolean {
    if (prefill.seats.length === 0 || decode.seats.length === 0) return false;
    return regular.seats.length === 0 || (this.hasReady(prefill) && this.hasReady(decode));
  }

  private bookWhole<E extends { close(): void }>(
    { regular, prefill, gap }: Legs,
    ask: LeaseAsk,
    engines: EnginePool<E>,
  ) {
    const why = gap ?? (prefill.seats.length > 0 ? HALVES_ONLY : undefined);
    if (regular.seats.length === 0 && why !== undefined) throw new NoWorkersError(regular.model, 1, why);
    return this.choice.book(regular, ask, engines);
  }

  private bookPair<E extends { close(): void }>(legs: Legs, ask: LeaseAsk, engines: EnginePool<E>) {
    const prefill = this.choice.book(legs.prefill, ask, engines);
    const { trace: _, ...asked } = ask; // what was cached is for the other one to tell
    const { worker } = prefill;
    const itsAsk = { ...asked, kind: engineKind(worker), tokens: 0 };
    try {
      const decode = this.choice.book(legs.decode, itsAsk, engines, worker.labels?.["zone"]);
      const missed = missedTarget(ask, prefill.choice.branch, decode.choice.branch);
      if (missed === undefined) return { prefill, decode };
      decode.done("neutral");
      throw missed;
    } catch (error) {
      prefill.done("neutral");
      throw error;
    }
  }

  /** Of the model as it is now: the one that is asked about may be of an earlier state of the fleet. */
  private legsOf({ entry: { id } }: Model): Legs {
    return this.names.get(id)?.tokenWorkers ?? this.crews.legs(id);
  }

  private hasReady({ seats }: Crew): boolean {
    return seats.some(({ slot }) => this.board.state(slot) === WorkerState.ready);
  }

  /** The same among the HTTP workers of a model, by its name or alias. Throws ModelNotFoundError, too. */
  leaseHttp(name: string, ask: LeaseAsk = {}): HttpLease {
    const its = this.named(name);
    if (its === undefined) throw this.unknown(name);
    return this.bookWhole(its.httpWorkers, ask, this.httpEngines);
  }

  /** As `isSplit`, of the HTTP workers of a name. */
  isSplitOverHttp(name: string): boolean {
    const its = this.named(name);
    return its !== undefined && this.areSplit(its.httpWorkers);
  }

  /** As `leasePair`, among the HTTP workers. Throws ModelNotFoundError, too. */
  leaseHttpPair(name: string, ask: LeaseAsk = {}): HttpLeasePair {
    const its = this.named(name);
    if (its === undefined) throw this.unknown(name);
    return this.bookPair(its.httpWorkers, ask, this.httpEngines);
  }

  /** Control has taken a worker out: what has not begun there, at whatever rank, goes elsewhere. */
  workerLost(slot: number): void {
    this.lost.lost(slot);
    for (const worker of this.snapshot.workers)
      if (worker.home === slot && worker.slot !== slot) this.lost.lost(worker.slot);
  }

  /**
   * Where a request to a model, by its name or alias, would go now, and why; nothing is booked, and nothing changes. Throws as `entry`, and
   * UnsupportedError.
   */
  explain(name: string, ask: LeaseAsk): RouteReport {
    const its = this.named(name);
    if (its === undefined) throw this.unknown(name);
    const way = this.way(name);
    const { tokenWorkers, httpWorkers } = its;
    if (way === "both" && !this.areSplit(tokenWorkers) && !this.areSplit(httpWorkers))
      return this.choice.explain(this.allOf(its), ask);
    const isHttp = way === "http" || (way === "both" && this.kindOfNext(name, ask.route ?? NO_PROMPT) === "http");
    const legs = isHttp ? httpWorkers : tokenWorkers;
    if (!this.areSplit(legs)) return this.choice.explain(legs.regular, ask);
    const { needs = 0 } = ask;
    const ofPair = { ...ask, needs: needs | Feature.handover };
    const report = this.choice.explain(legs.prefill, ofPair);
    const first = legs.prefill.seats.find(({ id }) => id === report.chosen);
    const kind = first && engineKind(first.worker);
    const decode = this.choice.explain(legs.decode, { ...ask, kind, tokens: 0 }, first?.zone);
    const missed = missedTarget(ask, report.branch, decode.branch);
    if (missed !== undefined) throw missed;
    return { ...report, decode };
  }

  /** It was not taken out of the fleet. */
  has({ slot }: WorkerEntry): boolean {
    return this.snapshot.workers.some((worker) => worker.slot === slot);
  }

  /** Others are preferred for a while, by default a second, as the worker could not be reached. */
  avoid(worker: WorkerEntry, ms: number = AVOID_MS): void {
    this.board.avoid(worker.slot, ms, this.clock.now());
  }

  /** How a worker has done turns out when its place was given back, as neutral, already. */
  judge(worker: WorkerEntry, how: Judgement): void {
    countLate(this.around, worker, how);
  }

  close(): void {
    this.stopClock();
    this.engines.keep([]);
    this.httpEngines.keep([]);
  }
}

/** Of requests that are not split: for vectors, for one. */
const HALVES_ONLY = "all of its workers prefill or decode only, and this needs one without a role";
const NO_PROMPT: RouteAsk = { tokens: 0 };

/** A worker that the client names must have a part of the work, where others are not tried for another reason (or nobody can be). */
const NOT_MISSED: ReadonlySet<string> = new Set(["target", "probe", "nobody"]);

function missedTarget({ route }: LeaseAsk, ...branches: readonly string[]): TargetWorkerError | undefined {
  const target = route?.target;
  if (target === undefined || branches.some((branch) => NOT_MISSED.has(branch))) return undefined;
  return new TargetWorkerError(target);
}
