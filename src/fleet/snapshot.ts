import type { EngineFacts } from "../engines/facts.ts";
import { runtimeOf } from "../engines/http/models.ts";
import type { TemplateSource } from "../template/model-template.ts";
import type { TokenizerHandle } from "../tokenizer/load.ts";
import type { CacheName } from "./cache-names.ts";

/** The dialect of workers that speak OpenAI's HTTP API. */
export const HTTP_DIALECT = "openai";

/** A worker as serving threads need it. */
export interface WorkerEntry {
  readonly id: string;
  /** Row on the fleet board. */
  readonly slot: number;
  readonly url: string;
  readonly dialect: string;
  readonly model: string;
  /** Under which name the index has what it caches of the model; absent: under that of the model. */
  readonly cacheName?: CacheName | undefined;
  /** What it told of itself when it registered; absent: nothing, and then nothing is refused on its account. */
  readonly facts?: EngineFacts | undefined;
  /** Whether it lets reasoning pass before it applies a constraint of the output; undefined: it did not say. */
  readonly waitsForReasoning?: boolean | undefined;
  /** Its part of the work; absent: the whole. */
  readonly role?: EngineFacts["role"] | undefined;
  /** Number in the prefix index; absent: it has none. */
  readonly member?: number | undefined;
  /** Tokens of a block of its KV cache, as the index cuts them. */
  readonly blockSize?: number | undefined;
  /** Its KV events are received. */
  readonly sendsEvents?: boolean | undefined;
  /** Of an entry that stands for one data-parallel rank. */
  readonly rank?: number | undefined;
  /** Of such an entry: the slot of the worker itself, by which connections are kept. */
  readonly home?: number | undefined;
  /** 50 where it is not told. */
  readonly priority?: number | undefined;
  /** 1 where it is not told. */
  readonly cost?: number | undefined;
  readonly bootstrapPort?: number | undefined;
  /** Labels of its specification and those that it told itself. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Of an HTTP worker with a key of its own. */
  readonly apiKey?: string | undefined;
}

/** The slot of the worker that an entry belongs to, whichever rank of it that stands for. */
export const homeOf = ({ home, slot }: WorkerEntry): number => home ?? slot;

/** Which engine it is, and how it is spoken to: two that share a request are alike in that. */
export const engineKind = ({ dialect, facts }: WorkerEntry): string =>
  dialect === HTTP_DIALECT ? `${facts === undefined ? "unknown" : runtimeOf(facts)} over HTTP` : dialect;

/** A model that HTTP workers serve: its requests go on as they came. */
export interface HttpModelEntry {
  readonly id: string;
  readonly aliases: readonly string[];
  /** Tokens of prompt and answer together; 0 = unknown. */
  readonly contextLength: number;
  /** Unix time in seconds of its first registration. */
  readonly created: number;
}

/** What is known of a model that gives vectors instead of text. */
export interface PoolingTraits {
  /** Sizes that its vectors may be cut to: those listed, or every one; undefined: it was not trained for that. */
  readonly matryoshka: "any" | readonly number[] | undefined;
  /** Of a classifier: its labels, in the order of the engine's numbers, and what makes probabilities of these. */
  readonly classes:
    | { readonly labels: readonly string[]; readonly activation: "softmax" | "sigmoid" | "none" }
    | undefined;
}

/** A model as serving threads need it; the tokenizer's tables are shared memory. */
export interface ModelEntry {
  readonly id: string;
  /** Further names that clients may use. */
  readonly aliases: readonly string[];
  readonly tokenizer: TokenizerHandle;
  /** Memory of its cache of token ids; undefined if it is off. */
  readonly tokenizerCache: SharedArrayBuffer | undefined;
  readonly template: TemplateSource | undefined;
  /** Names of the parsers of its output. */
  readonly parsers: { readonly reasoning: string | undefined; readonly tool: string | undefined };
  /** Every id that ends an answer. */
  readonly eosTokenIds: readonly number[];
  /** Those of them that the engine ends at without naming them as the stop. */
  readonly quietEosTokenIds: readonly number[];
  /** Absent for models that generate. */
  readonly pooling?: PoolingTraits | undefined;
  /** Tokens of prompt and answer together; 0 = unknown. */
  readonly contextLength: number;
  /** Defaults of generation_config under their own names. */
  readonly defaultSampling: Readonly<Record<string, number>>;
  /** Unix time in seconds of its first registration. */
  readonly created: number;
}

/** What lists of models show of one, whoever serves it. */
export type ShownModel = HttpModelEntry & Partial<Pick<ModelEntry, "defaultSampling" | "pooling" | "tokenizer">>;

/** A tokenizer that was added by name, besides those of the models. */
export interface TokenizerEntry {
  readonly id: string;
  readonly name: string;
  /** Where its files come from. */
  readonly source: string;
  /** Unix time in seconds. */
  readonly created: number;
  readonly state:
    | { readonly status: "pending" }
    | {
        readonly status: "ready";
        readonly tokenizer: TokenizerHandle;
        readonly vocabSize: number;
        readonly template: TemplateSource | undefined;
      }
    | { readonly status: "failed"; readonly message: string };
}

/** All that serving threads know of the fleet besides the board; control sends a new one at every change. */
export interface FleetSnapshot {
  /** Workers that have registered. */
  readonly workers: readonly WorkerEntry[];
  /** Workers that there are to be, those that are still starting among them. */
  readonly expected: number;
  /** Of these, those of which nothing is known yet; absent: all that are not in the list. */
  readonly starting?: number;
  readonly models: readonly ModelEntry[];
  /** Models of HTTP workers; a model may be in both lists. */
  readonly httpModels?: readonly HttpModelEntry[];
  readonly tokenizers: readonly TokenizerEntry[];
}

export const emptyFleet: FleetSnapshot = { workers: [], expected: 0, models: [], tokenizers: [] };
