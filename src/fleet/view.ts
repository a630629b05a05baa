import { type Engine, EngineError } from "../engines/engine.ts";
import type { HttpEngine } from "../engines/http/engine.ts";
import { ModelNotFoundError, NotOfferedError, NoWorkersError } from "../errors.ts";
import type { ChatTemplate } from "../template/chat-template.ts";
import type { TemplateSource } from "../template/model-template.ts";
import { type FleetBoard, WorkerState } from "../threads/fleet-board.ts";
import type { RetryBudget } from "../threads/limit-board.ts";
import { type CachedTokenizer, type CacheMismatch, cachedTokenizer } from "../tokenizer/cache/cached-tokenizer.ts";
import { openTokenizer, type TokenizerHandle } from "../tokenizer/load.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { type Clock, systemClock } from "./clock.ts";
import { type DispatchObserver, UNOBSERVED } from "./dispatch/observer.ts";
import { DEFAULT_POLICY, type DispatchPolicy } from "./dispatch/policy.ts";
import { Pulse } from "./dispatch/pulse.ts";
import { EnginePool } from "./engine-pool.ts";
import type { HttpLease, Lease, LeaseAsk } from "./lease.ts";
import { LostWorkers } from "./lost-workers.ts";
import {
  emptyFleet,
  type FleetSnapshot,
  HTTP_DIALECT,
  type HttpModelEntry,
  type ModelEntry,
  type TokenizerEntry,
  type WorkerEntry,
} from "./snapshot.ts";
import { compiledOnce } from "./usable-template.ts";
import { WorkerChoice } from "./worker-choice.ts";

/** A model that this thread can serve. */
export interface Model {
  readonly entry: ModelEntry;
  readonly tokenizer: CachedTokenizer;
  /** Compiled when it is first used. One that does not compile refuses every conversation. */
  readonly template: (() => ChatTemplate) | undefined;
  readonly eosTokenIds: ReadonlySet<number>;
  readonly quietEosTokenIds: ReadonlySet<number>;
  /** What its workers say of themselves in `WorkerEntry.waitsForReasoning`; undefined where they differ, too. */
  readonly waitsForReasoning: boolean | undefined;
  /** Bits of `Feature` that one of its workers or another offers. */
  readonly features: number;
}

/** A tokenizer that clients may use by itself: a model's, or one that was added. */
export interface NamedTokenizer {
  readonly id: string;
  readonly name: string;
  readonly handle: TokenizerHandle;
  readonly tokenizer: Tokenizer;
  readonly template: (() => ChatTemplate) | undefined;
}

/** How requests to a model are served: as token ids, passed on as they came, or by workers of both kinds. */
export type Way = "tokens" | "http" | "both";

/** What one name of a model stands for, and who serves it in either way. */
interface Named {
  readonly id: string;
  tokens: Model | undefined;
  http: HttpModelEntry | undefined;
  readonly tokenWorkers: WorkerEntry[];
  readonly httpWorkers: WorkerEntry[];
}

const AVOID_MS = 1000;

function agreed(workers: readonly WorkerEntry[]): boolean | undefined {
  const [first, ...others] = new Set(workers.map(({ waitsForReasoning }) => waitsForReasoning));
  return others.length === 0 ? first : undefined;
}

export type EngineFactory = (worker: WorkerEntry) => Engine;
export type HttpEngineFactory = (worker: WorkerEntry) => HttpEngine;

/** Stands where no HTTP workers can be served. */
const noHttpEngines: HttpEngineFactory = () => {
  throw new EngineError("unimplemented", "HTTP engines are not supported");
};

/** How the tokenizers' caches check themselves. */
export interface CacheChecks {
  /** Share of the hits that are encoded anew. */
  readonly verifyShare: number;
  /** A model's cache gave wrong ids, and is off now. */
  readonly onMismatch: (model: string, mismatch: CacheMismatch) => void;
}

export interface ViewOptions {
  readonly createHttpEngine?: HttpEngineFactory | undefined;
  readonly cacheChecks?: CacheChecks | undefined;
  /** What is done when workers fail, and how long anybody waits for them. */
  readonly policy?: DispatchPolicy | undefined;
  /** Told of what becomes of this thread's requests. */
  readonly observer?: DispatchObserver | undefined;
  readonly clock?: Clock | undefined;
  /** Absent: as many retries as anybody likes. */
  readonly retryBudget?: RetryBudget | undefined;
  /** A template of a model does not compile: chats that need it are refused. */
  readonly onBrokenTemplate?: ((model: string, problem: string) => void) | undefined;
}

const UNLIMITED: RetryBudget = { deposit() {}, retryToken: () => true };
const NO_CHECKS: CacheChecks = { verifyShare: 0, onMismatch: () => {} };

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
  private readonly checks: CacheChecks;
  private readonly onBrokenTemplate: NonNullable<ViewOptions["onBrokenTemplate"]>;
  private readonly choice: WorkerChoice;
  /** A name that stands for another model here. */
  private readonly redirected: readonly [name: string, other: string] | undefined = undefined;
  /** Requests that have not begun, for when their worker turns out not to move. */
  readonly lost = new LostWorkers();
  /** Templates of added tokenizers, compiled. */
  private readonly templates = new WeakMap<TemplateSource, () => ChatTemplate>();

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
      retryBudget = UNLIMITED,
      onBrokenTemplate = () => {},
    }: ViewOptions = {},
  ) {
    this.checks = cacheChecks;
    this.onBrokenTemplate = onBrokenTemplate;
    this.retryBudget = retryBudget;
    this.policy = policy;
    this.observer = observer;
    const own = systemClock();
    this.clock = clock ?? own;
    this.stopClock = () => own.close();
    this.choice = new WorkerChoice({ board, thread, clock: this.clock, pulse: new Pulse(this.clock), observer });
    this.engines = new EnginePool(createEngine);
    this.httpEngines = new EnginePool(createHttpEngine);
  }

  /** Takes over a new state of the fleet. Connections and tokenizers of what stays are kept. */
  apply(snapshot: FleetSnapshot): void {
    const before = new Map([...this.names.values()].map(({ id, tokens }) => [id, tokens]));
    this.snapshot = snapshot;
    const byId = new Map<string, Named>();
    const named = (id: string): Named => {
      let found = byId.get(id);
      if (found === undefined) {
        found = { id, tokens: undefined, http: undefined, tokenWorkers: [], httpWorkers: [] };
        byId.set(id, found);
      }
      return found;
    };
    for (const worker of snapshot.workers) {
      const { tokenWorkers, httpWorkers } = named(worker.model);
      (worker.dialect === HTTP_DIALECT ? httpWorkers : tokenWorkers).push(worker);
    }
    for (const entry of snapshot.models) {
      const its = named(entry.id);
      // A snapshot that comes from another thread is a copy: only the load tells whether it is the same model.
      const old = before.get(entry.id);
      const kept = old?.entry.created === entry.created ? old : undefined;
      its.tokens = {
        entry,
        tokenizer: kept?.tokenizer ?? this.openTokenizer(entry),
        template: kept === undefined ? this.templateOf(entry) : kept.template,
        eosTokenIds: new Set(entry.eosTokenIds),
        quietEosTokenIds: new Set(entry.quietEosTokenIds),
        waitsForReasoning: agreed(its.tokenWorkers),
        features: offered(its.tokenWorkers),
      };
    }
    for (const entry of httpModels(snapshot)) named(entry.id).http = entry;
    this.names = new Map();
    // An alias never hides a model of that very name.
    for (const { id, aliases } of [...snapshot.models, ...httpModels(snapshot)])
      for (const alias of aliases) this.names.set(alias, named(id));
    for (const its of byId.values())
      if (its.tokens !== undefined || its.http !== undefined) this.names.set(its.id, its);
    this.engines.keep(snapshot.workers);
    this.httpEngines.keep(snapshot.workers);
  }

  private templateOf({ id, template }: ModelEntry): (() => ChatTemplate) | undefined {
    return template && compiledOnce(template, (problem) => this.onBrokenTemplate(id, problem));
  }

  private openTokenizer({ id, tokenizer, tokenizerCache }: ModelEntry): CachedTokenizer {
    const { verifyShare, onMismatch } = this.checks;
    return cachedTokenizer(openTokenizer(tokenizer), tokenizerCache, {
      verifyShare,
      onMismatch: (mismatch) => onMismatch(id, mismatch),
    });
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

  /** Of a model with workers of both kinds: the kind of the one that is loaded least. */
  kindOfNext(name: string): "tokens" | "http" {
    const { tokenWorkers = [], httpWorkers = [] } = this.named(name) ?? {};
    const best = this.choice.best([...tokenWorkers, ...httpWorkers]);
    return best?.dialect === HTTP_DIALECT ? "http" : "tokens";
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
    if (added.state.status !== "ready") throw new ModelNotFoundError(name);
    const { tokenizer, template } = added.state;
    let compiled = template && this.templates.get(template);
    if (template !== undefined && compiled === undefined) {
      compiled = compiledOnce(template, () => {}); // the registry has told
      this.templates.set(template, compiled);
    }
    return { id: added.id, name, handle: tokenizer, tokenizer: openTokenizer(tokenizer), template: compiled };
  }

  readyWorkers(): number {
    const slots = new Set(this.snapshot.workers.map(({ slot }) => slot)); // one that serves several models is one
    return [...slots].filter((slot) => this.board.state(slot) === WorkerState.ready).length;
  }

  get workerCount(): number {
    return this.snapshot.expected;
  }

  /**
   * Books a place at the least loaded worker that can do what is asked. Workers that could not be reached a moment ago come last.
   * Throws UnsupportedError where no worker of the model ever can, NoWorkersError where none can now.
   */
  lease(model: Model, ask: LeaseAsk = {}): Lease {
    const { id } = model.entry;
    return this.choice.book(id, this.names.get(id)?.tokenWorkers ?? [], ask, this.engines);
  }

  /** The same at a worker that runs nothing. */
  leaseIdle(model: Model, ask: LeaseAsk): Lease {
    const lease = this.lease(model, ask);
    if (!lease.isProbe && this.board.running(lease.worker.slot) <= 1) return lease;
    lease.done("neutral");
    throw new NoWorkersError(model.entry.id);
  }

  /** The same among the HTTP workers of a model, by its name or alias. Throws ModelNotFoundError, too. */
  leaseHttp(name: string, ask: LeaseAsk = {}): HttpLease {
    const its = this.named(name);
    if (its === undefined) throw this.unknown(name);
    return this.choice.book(its.id, its.httpWorkers, ask, this.httpEngines);
  }

  /** It was not taken out of the fleet. */
  has({ slot }: WorkerEntry): boolean {
    return this.snapshot.workers.some((worker) => worker.slot === slot);
  }

  /** Others are preferred for a while, by default a second, as the worker could not be reached. */
  avoid(worker: WorkerEntry, ms: number = AVOID_MS): void {
    this.board.avoid(worker.slot, ms, this.clock.now());
  }

  close(): void {
    this.stopClock();
    this.engines.keep([]);
    this.httpEngines.keep([]);
  }
}

const httpModels = ({ httpModels: entries = [] }: FleetSnapshot): readonly HttpModelEntry[] => entries;

/** What workers offer between them; all where one has not told. */
const offered = (workers: readonly WorkerEntry[]): number =>
  workers.reduce((bits, { facts }) => bits | (facts?.features ?? ALL_FEATURES), 0) || ALL_FEATURES;
const ALL_FEATURES = ~0;
