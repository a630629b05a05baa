import { TokenizerExistsError } from "../errors.ts";
import type { Logger } from "../telemetry/log.ts";
import { compileModelTemplate } from "../template/model-template.ts";
import { openTokenizer, type TokenizerHandle } from "../tokenizer/load.ts";
import type { NewTokenizer } from "./control-link.ts";
import { givenTemplate } from "./given-template.ts";
import { modelKind } from "./model-kind.ts";
import type { TokenizerEntry } from "./snapshot.ts";
import { usableTemplate } from "./usable-template.ts";

/** How a registry gets at files and tables. */
export interface TokenizerSources {
  /** Files of a folder or a repository. */
  files(source: string): Promise<ReadonlyMap<string, Uint8Array>>;
  tokenizer(files: ReadonlyMap<string, Uint8Array>): Promise<TokenizerHandle>;
}

/** Most tokenizers that may be added: each takes tens of megabytes. */
const MOST = 64;

/** Tokenizers that were added by name while the gateway runs. They are gone after a restart. */
export class TokenizerRegistry {
  private readonly byId = new Map<string, TokenizerEntry>();

  /** `changed` is called whenever an entry is new, changed or gone; `taken` says whether a model has a name. */
  constructor(
    private readonly sources: TokenizerSources,
    private readonly log: Logger,
    private readonly taken: (name: string) => boolean,
    private readonly changed: () => void,
  ) {}

  entries(): readonly TokenizerEntry[] {
    return [...this.byId.values()];
  }

  /** Is none to be added under this name, as there is one, or one too many? */
  knows(name: string): boolean {
    return this.taken(name) || this.byId.size >= MOST || this.entries().some((entry) => entry.name === name);
  }

  /** Begins to load a tokenizer; the entry is pending. Throws TokenizerExistsError if its name is in use, or there are too many. */
  add(wanted: NewTokenizer): TokenizerEntry {
    const { name, source } = wanted;
    if (this.taken(name) || this.entries().some((entry) => entry.name === name))
      throw new TokenizerExistsError(`There is a tokenizer '${name}' already`, { param: "name" });
    if (this.byId.size >= MOST)
      throw new TokenizerExistsError(`There are ${MOST} tokenizers already; remove one first`);
    const entry: TokenizerEntry = {
      id: crypto.randomUUID(),
      name,
      source,
      created: Math.floor(Date.now() / 1000),
      state: { status: "pending" },
    };
    this.byId.set(entry.id, entry);
    this.changed();
    void this.load(entry, wanted);
    return entry;
  }

  remove(id: string): boolean {
    if (!this.byId.delete(id)) return false;
    this.changed();
    return true;
  }

  private async load(entry: TokenizerEntry, wanted: NewTokenizer): Promise<void> {
    const state = await this.ready(wanted).catch((error: unknown): TokenizerEntry["state"] => {
      this.log.warn("a tokenizer could not be added", { name: wanted.name, source: wanted.source, error });
      return { status: "failed", message: error instanceof Error ? error.message : String(error) };
    });
    if (!this.byId.has(entry.id)) return; // removed meanwhile
    this.byId.set(entry.id, { ...entry, state });
    this.changed();
  }

  private async ready({ name, source, chatTemplatePath }: NewTokenizer): Promise<TokenizerEntry["state"]> {
    const files = await this.sources.files(source);
    const tokenizer = await this.sources.tokenizer(files);
    const found = givenTemplate(modelKind(source, files), files, chatTemplatePath);
    // one that the request names must compile: one that the files bring may cost the chats only
    if (found !== undefined && chatTemplatePath !== undefined) compileModelTemplate(found);
    const template =
      found &&
      usableTemplate(found, (problem) =>
        this.log.error("a chat template of the tokenizer is broken: messages that need it are refused", {
          name,
          problem,
        }),
      );
    return { status: "ready", tokenizer, vocabSize: openTokenizer(tokenizer).vocabSize, template };
  }
}
