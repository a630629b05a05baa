import { basename, join } from "node:path";
import { parseAlias } from "../config/aliases.ts";
import { cardAliases, type ModelCard, parseCard } from "../config/model-cards.ts";
import type { ServeConfig } from "../config/serve-options.ts";
import { type Engine, EngineError, type EngineErrorKind, type ModelInfo } from "../engines/engine.ts";
import { fetchModelFiles, type ModelFilesOptions } from "../hub/model-files.ts";
import { fetchReportedModel, withTokenizerOf } from "../hub/reported-model.ts";
import type { Logger } from "../telemetry/log.ts";
import { createTokenizerCache } from "../tokenizer/cache/board.ts";
import { loadBuilt, openTokenizer, type TokenizerHandle } from "../tokenizer/load.ts";
import { contextLength, defaultSampling, endOfSequenceIds } from "../tokenizer/model-files.ts";
import { TokenizerError } from "../tokenizer/tokenizer.ts";
import type { Compute } from "./control-link.ts";
import { givenTemplate } from "./given-template.ts";
import { chosenParsers, modelKind, withCard } from "./model-kind.ts";
import { poolingTraits } from "./pooling-traits.ts";
import type { ModelEntry } from "./snapshot.ts";

const BUNDLE_DEADLINE_MS = 120_000;
/** Failures that say that an engine has no bundle: none offered, no path to pack, no files in it. The others may pass. */
const NO_BUNDLE: readonly EngineErrorKind[] = ["unimplemented", "invalid", "not_found", "failed"];

/** What a model hub is asked with. */
export interface HubAccess extends Pick<ModelFilesOptions, "environment" | "signal" | "pausesMs"> {
  readonly log?: Pick<Logger, "info" | "warn">;
}

/** The models that the fleet serves, each loaded once however many workers serve it. */
export class ModelCatalog {
  private readonly loading = new Map<string, Promise<ModelEntry>>();
  private readonly loaded = new Map<string, ModelEntry>();
  private readonly aliases: ReadonlyMap<string, readonly string[]>;
  private readonly cards: readonly ModelCard[];

  constructor(
    private readonly config: ServeConfig,
    private readonly cacheDir: string | undefined,
    private readonly compute: Pick<Compute, "build">,
    private readonly hub: HubAccess = { environment: process.env },
  ) {
    const aliases = new Map<string, string[]>();
    this.cards = config.modelCard.map(parseCard);
    for (const [alias, model] of [...config.modelAlias, ...cardAliases(this.cards)].map(parseAlias)) {
      const known = aliases.get(model) ?? [];
      if (!known.includes(alias)) aliases.set(model, [...known, alias]);
    }
    this.aliases = aliases;
  }

  entries(): readonly ModelEntry[] {
    return [...this.loaded.values()];
  }

  /** Further names of a model, by the settings. */
  aliasesOf(id: string): readonly string[] {
    return this.aliases.get(id) ?? [];
  }

  /** Is the model of this id loaded? */
  holds(id: string): boolean {
    return this.loaded.has(id);
  }

  /** Nobody serves it any more; a worker that comes later loads it anew. */
  drop(id: string): void {
    this.loaded.delete(id);
    this.loading.delete(id);
  }

  /** Is there a model of this name or alias, or will there be? */
  has(name: string): boolean {
    return this.loading.has(name) || [...this.aliases.values()].some((aliases) => aliases.includes(name));
  }

  /** The files of a model or tokenizer: of a folder, or of a repository. */
  files(source: string): Promise<ReadonlyMap<string, Uint8Array>> {
    return fetchModelFiles(source, this.hubOptions());
  }

  private hubOptions(): ModelFilesOptions {
    return { ...this.hub, fallbackDir: this.cacheDir === undefined ? undefined : join(this.cacheDir, "hub") };
  }

  /** The tokenizer among `files`, built if need be. */
  async tokenizer(files: ReadonlyMap<string, Uint8Array>): Promise<TokenizerHandle> {
    const { cacheDir } = this;
    return (
      (await loadBuilt(files, cacheDir === undefined ? {} : { cacheDir })) ??
      (await this.compute.build(new Map(files), cacheDir))
    );
  }

  /**
   * Makes sure that an engine's model is loaded; resolves to its id. `names`: what its worker is told to call it, the id first; those
   * of the worker that comes first hold.
   */
  async add(info: ModelInfo, engine: Engine, names: readonly string[] = []): Promise<string> {
    const [id = info.servedModelName || basename(info.modelPath) || "unknown", ...aliases] = names;
    let loading = this.loading.get(id);
    if (loading === undefined) {
      const begun = this.load(id, aliases, info, engine);
      loading = begun;
      this.loading.set(id, begun);
      begun.then(
        (entry) => {
          if (this.loading.get(id) === begun) this.loaded.set(id, entry);
        },
        () => {
          if (this.loading.get(id) === begun) this.loading.delete(id); // the next try starts anew
        },
      );
    }
    return (await loading).id;
  }

  private async load(id: string, aliases: readonly string[], info: ModelInfo, engine: Engine): Promise<ModelEntry> {
    const { chatTemplate, reasoningParser, toolCallParser } = withCard(this.config, this.cards, id);
    const files = await this.modelFiles(info, engine);
    const tokenizer = await this.tokenizer(files);
    const kind = modelKind(info.modelPath || id, files);
    const template = givenTemplate(kind, files, chatTemplate);
    const eosTokenIds = [...new Set([...info.eosTokenIds, ...endOfSequenceIds(files, openTokenizer(tokenizer))])];
    return {
      id,
      aliases: [...new Set([...this.aliasesOf(id), ...aliases])],
      tokenizer,
      tokenizerCache: newTokenizerCache(this.config),
      template,
      parsers: chosenParsers({ reasoningParser, toolCallParser }, { ...kind, chatTemplate: template?.source ?? "" }),
      eosTokenIds,
      quietEosTokenIds: info.eosTokenIds.length > 0 ? info.eosTokenIds : eosTokenIds,
      pooling: info.isGeneration ? undefined : poolingTraits(files),
      contextLength: info.contextLength || contextLength(files) || 0,
      defaultSampling:
        Object.keys(info.defaultSampling).length > 0 ? info.defaultSampling : { ...defaultSampling(files) },
      created: Math.floor(Date.now() / 1000),
    };
  }

  private async modelFiles(info: ModelInfo, engine: Engine): Promise<ReadonlyMap<string, Uint8Array>> {
    const { modelPath, tokenizerPath } = this.config;
    if (modelPath === undefined && tokenizerPath === undefined) return this.filesByEngine(info, engine);
    const model = modelPath === undefined ? new Map<string, Uint8Array>() : await this.files(modelPath);
    return tokenizerPath === undefined ? model : withTokenizerOf(model, await this.files(tokenizerPath));
  }

  /** The engine's bundle; if it has none, the files of where it says that its model is from. */
  private async filesByEngine(info: ModelInfo, engine: Engine): Promise<ReadonlyMap<string, Uint8Array>> {
    try {
      return await engine.tokenizerBundle(BUNDLE_DEADLINE_MS);
    } catch (none) {
      if (!(none instanceof EngineError) || !NO_BUNDLE.includes(none.kind)) throw none;
      const tried = `the engine sends no tokenizer (${none.message})`;
      try {
        const files = await fetchReportedModel(info, this.hubOptions());
        this.hub.log?.info(`${tried}: the one of its model path is used`, { model_path: info.modelPath });
        return files;
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        throw new TokenizerError(`${tried}, nor does its model path lead to one: ${why}; give --model-path`, {
          cause: error,
        });
      }
    }
  }
}

function newTokenizerCache(config: ServeConfig): SharedArrayBuffer | undefined {
  const { tokenizerCacheEnableL0: l0, tokenizerCacheEnableL1: l1 } = config;
  if (!l0 && !l1) return undefined;
  return createTokenizerCache({
    l0,
    l1,
    l0Entries: config.tokenizerCacheL0MaxEntries,
    bytes: config.tokenizerCacheL1MaxMemory,
  });
}
