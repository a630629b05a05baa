/** What the names of models stand for in one serving thread, and who serves them. */
import type { ChatTemplate } from "../template/chat-template.ts";
import type { CachedTokenizer } from "../tokenizer/cache/cached-tokenizer.ts";
import { type Crews, type Legs, seatsOf } from "./crew.ts";
import {
  type FleetSnapshot,
  HTTP_DIALECT,
  type HttpModelEntry,
  type ModelEntry,
  type WorkerEntry,
} from "./snapshot.ts";

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

/** What one name of a model stands for, and who serves it in either way. */
export interface Named {
  readonly id: string;
  tokens: Model | undefined;
  http: HttpModelEntry | undefined;
  readonly tokenWorkers: Legs;
  readonly httpWorkers: Legs;
}

/** What of a model outlives a change of the fleet: all that is dear to make. */
export type Loaded = Pick<Model, "entry" | "tokenizer" | "template">;

/** Everything by the names that clients may use. `loaded` makes, or finds, what belongs to a model that is served as token ids. */
export function namesOf(
  snapshot: FleetSnapshot,
  crews: Crews,
  loaded: (entry: ModelEntry) => Loaded,
): Map<string, Named> {
  const workersOf = Map.groupBy(snapshot.workers, ({ model }) => model);
  const legsOf = (model: string, isHttp: boolean): Legs => {
    const all = workersOf.get(model) ?? [];
    const its = all.filter(({ dialect }) => (dialect === HTTP_DIALECT) === isHttp);
    return crews.legs(model, its, its.length < all.length);
  };
  const byId = new Map<string, Named>();
  const named = (id: string): Named => {
    let found = byId.get(id);
    if (found === undefined) {
      const [tokenWorkers, httpWorkers] = [legsOf(id, false), legsOf(id, true)];
      found = { id, tokens: undefined, http: undefined, tokenWorkers, httpWorkers };
      byId.set(id, found);
    }
    return found;
  };
  for (const entry of snapshot.models) {
    const its = named(entry.id);
    const workers = seatsOf(its.tokenWorkers).map(({ worker }) => worker);
    its.tokens = {
      ...loaded(entry),
      eosTokenIds: new Set(entry.eosTokenIds),
      quietEosTokenIds: new Set(entry.quietEosTokenIds),
      waitsForReasoning: agreed(workers),
      features: offered(workers),
    };
  }
  for (const entry of httpModels(snapshot)) named(entry.id).http = entry;
  const names = new Map<string, Named>();
  // An alias never hides a model of that very name.
  for (const { id, aliases } of [...snapshot.models, ...httpModels(snapshot)])
    for (const alias of aliases) names.set(alias, named(id));
  for (const its of byId.values()) if (its.tokens !== undefined || its.http !== undefined) names.set(its.id, its);
  return names;
}

export const httpModels = ({ httpModels: entries = [] }: FleetSnapshot): readonly HttpModelEntry[] => entries;

function agreed(workers: readonly WorkerEntry[]): boolean | undefined {
  const [first, ...others] = new Set(workers.map(({ waitsForReasoning }) => waitsForReasoning));
  return others.length === 0 ? first : undefined;
}

/** What workers offer between them; all where one has not told. */
const offered = (workers: readonly WorkerEntry[]): number =>
  workers.reduce((bits, { facts }) => bits | (facts?.features ?? ALL_FEATURES), 0) || ALL_FEATURES;
const ALL_FEATURES = ~0;
