import type { Engine } from "../engines/engine.ts";
import { ModelNotFoundError, NoWorkersError } from "../errors.ts";
import { leastLoad } from "../routing/least-load.ts";
import type { ChatTemplate } from "../template/chat-template.ts";
import { compileModelTemplate, type TemplateSource } from "../template/model-template.ts";
import { type FleetBoard, WorkerState } from "../threads/fleet-board.ts";
import { type CachedTokenizer, type CacheMismatch, cachedTokenizer } from "../tokenizer/cache/cached-tokenizer.ts";
import { openTokenizer, type TokenizerHandle } from "../tokenizer/load.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { emptyFleet, type FleetSnapshot, type ModelEntry, type TokenizerEntry, type WorkerEntry } from "./snapshot.ts";

/** A model that this thread can serve. */
export interface Model {
  readonly entry: ModelEntry;
  readonly tokenizer: CachedTokenizer;
  /** Compiled when it is first used: control has tried that it compiles. */
  readonly template: (() => ChatTemplate) | undefined;
  readonly eosTokenIds: ReadonlySet<number>;
  readonly quietEosTokenIds: ReadonlySet<number>;
  /** What its workers say of themselves in `WorkerEntry.waitsForReasoning`; undefined where they differ, too. */
  readonly waitsForReasoning: boolean | undefined;
}

/** A tokenizer that clients may use by itself: a model's, or one that was added. */
export interface NamedTokenizer {
  readonly id: string;
  readonly name: string;
  readonly handle: TokenizerHandle;
  readonly tokenizer: Tokenizer;
  readonly template: (() => ChatTemplate) | undefined;
}

/** A booked place at a worker. */
export interface Lease {
  readonly worker: WorkerEntry;
  readonly engine: Engine;
  /** Gives the place back; exactly one call counts. */
  release(): void;
}

const AVOID_MS = 1000;
const NONE: ReadonlySet<number> = new Set();

function compiledOnce(source: TemplateSource): () => ChatTemplate {
  let compiled: ChatTemplate | undefined;
  return () => {
    compiled ??= compileModelTemplate(source);
    return compiled;
  };
}

function agreed(workers: readonly WorkerEntry[]): boolean | undefined {
  const [first, ...others] = new Set(workers.map(({ waitsForReasoning }) => waitsForReasoning));
  return others.length === 0 ? first : undefined;
}

export type EngineFactory = (worker: WorkerEntry) => Engine;

/** How the tokenizers' caches check themselves. */
export interface CacheChecks {
  /** Share of the hits that are encoded anew. */
  readonly verifyShare: number;
  /** A model's cache gave wrong ids, and is off now. */
  readonly onMismatch: (model: string, mismatch: CacheMismatch) => void;
}

const NO_CHECKS: CacheChecks = { verifyShare: 0, onMismatch: () => {} };

/** The fleet as one serving thread sees it: its own engine connections and tokenizers over the shared board. */
export class FleetView {
  private snapshot: FleetSnapshot = emptyFleet;
  private models = new Map<string, Model>();
  private readonly engines = new Map<string, Engine>();
  private turn = 0;
  /** Templates of added tokenizers, compiled. */
  private readonly templates = new WeakMap<TemplateSource, () => ChatTemplate>();

  constructor(
    private readonly board: FleetBoard,
    private readonly thread: number,
    private readonly createEngine: EngineFactory,
    private readonly checks: CacheChecks = NO_CHECKS,
  ) {}

  /** Takes over a new state of the fleet. Connections and tokenizers of what stays are kept. */
  apply(snapshot: FleetSnapshot): void {
    const before = new Map([...this.models.values()].map((model) => [model.entry.id, model]));
    this.snapshot = snapshot;
    this.models = new Map();
    const opened: Model[] = [];
    for (const entry of snapshot.models) {
      // A snapshot that comes from another thread is a copy: only the load tells whether it is the same model.
      const old = before.get(entry.id);
      const kept = old?.entry.created === entry.created ? old : undefined;
      const model: Model = {
        entry,
        tokenizer: kept?.tokenizer ?? this.openTokenizer(entry),
        template: kept === undefined ? entry.template && compiledOnce(entry.template) : kept.template,
        eosTokenIds: new Set(entry.eosTokenIds),
        quietEosTokenIds: new Set(entry.quietEosTokenIds),
        waitsForReasoning: agreed(snapshot.workers.filter(({ model: id }) => id === entry.id)),
      };
      opened.push(model);
    }
    // An alias never hides a model of that very name.
    for (const model of opened) for (const alias of model.entry.aliases) this.models.set(alias, model);
    for (const model of opened) this.models.set(model.entry.id, model);
    const urls = new Set(snapshot.workers.map((worker) => worker.url));
    for (const [url, engine] of this.engines) {
      if (urls.has(url)) continue;
      this.engines.delete(url);
      engine.close();
    }
  }

  private openTokenizer({ id, tokenizer, tokenizerCache }: ModelEntry): CachedTokenizer {
    const { verifyShare, onMismatch } = this.checks;
    return cachedTokenizer(openTokenizer(tokenizer), tokenizerCache, {
      verifyShare,
      onMismatch: (mismatch) => onMismatch(id, mismatch),
    });
  }

  /** Models that clients can ask for, each once. */
  list(): readonly ModelEntry[] {
    return this.snapshot.models;
  }

  /** A model by its name or alias. While workers are still starting, an unknown one may be theirs: then it is unavailable. */
  model(name: string): Model {
    const model = this.models.get(name);
    if (model !== undefined) return model;
    throw this.snapshot.workers.length < this.snapshot.expected
      ? new NoWorkersError(name)
      : new ModelNotFoundError(name);
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
      compiled = compiledOnce(template);
      this.templates.set(template, compiled);
    }
    return { id: added.id, name, handle: tokenizer, tokenizer: openTokenizer(tokenizer), template: compiled };
  }

  readyWorkers(): number {
    return this.snapshot.workers.filter((worker) => this.board.state(worker.slot) === WorkerState.ready).length;
  }

  get workerCount(): number {
    return this.snapshot.expected;
  }

  /**
   * Books a place at the least loaded ready worker of a model, but for those in `tried`. Workers that could not be reached a moment
   * ago come last. Throws NoWorkersError.
   */
  lease(model: Model, tried: ReadonlySet<number> = NONE): Lease {
    const candidates = this.snapshot.workers.filter(
      ({ model: id, slot }) =>
        id === model.entry.id && this.board.state(slot) === WorkerState.ready && !tried.has(slot),
    );
    const reachable = candidates.filter(({ slot }) => !this.board.isAvoided(slot));
    const choice = reachable.length > 0 ? reachable : candidates;
    const worker = leastLoad(choice, ({ slot }) => this.board.running(slot), this.turn++);
    if (worker === undefined) throw new NoWorkersError(model.entry.id);
    let engine = this.engines.get(worker.url);
    if (engine === undefined) {
      engine = this.createEngine(worker);
      this.engines.set(worker.url, engine);
    }
    this.board.book(worker.slot, this.thread);
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      this.board.release(worker.slot, this.thread);
    };
    return { worker, engine, release };
  }

  /** The worker could not be reached: others are preferred for a second. */
  avoid(worker: WorkerEntry): void {
    this.board.avoid(worker.slot, AVOID_MS);
  }

  close(): void {
    for (const engine of this.engines.values()) engine.close();
    this.engines.clear();
  }
}
