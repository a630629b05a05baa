/** One serving thread's tokenizers: those of its models, with their caches, and those that were added by name. */
import { ModelNotFoundError } from "../errors.ts";
import type { ChatTemplate } from "../template/chat-template.ts";
import type { TemplateSource } from "../template/model-template.ts";
import { type CachedTokenizer, type CacheMismatch, cachedTokenizer } from "../tokenizer/cache/cached-tokenizer.ts";
import { openTokenizer, type TokenizerHandle } from "../tokenizer/load.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Loaded, Model } from "./served-models.ts";
import type { ModelEntry, TokenizerEntry } from "./snapshot.ts";
import { compiledOnce } from "./usable-template.ts";

/** A tokenizer that clients may use by itself: a model's, or one that was added. */
export interface NamedTokenizer {
  readonly id: string;
  readonly name: string;
  readonly handle: TokenizerHandle;
  readonly tokenizer: Tokenizer;
  readonly template: (() => ChatTemplate) | undefined;
}

/** How the tokenizers' caches check themselves. */
export interface CacheChecks {
  /** Share of the hits that are encoded anew. */
  readonly verifyShare: number;
  /** A model's cache gave wrong ids, and is off now. */
  readonly onMismatch: (model: string, mismatch: CacheMismatch) => void;
}

export const NO_CHECKS: CacheChecks = { verifyShare: 0, onMismatch: () => {} };

export class ViewTokenizers {
  /** Templates of added tokenizers, compiled. */
  private readonly templates = new WeakMap<TemplateSource, () => ChatTemplate>();

  constructor(
    private readonly checks: CacheChecks,
    /** A template of a model does not compile: chats that need it are refused. */
    private readonly onBrokenTemplate: (model: string, problem: string) => void,
  ) {}

  /** A model's; what was loaded `before` is kept where it is the same model still. */
  loaded(entry: ModelEntry, before: Model | undefined): Loaded {
    // A snapshot that comes from another thread is a copy: only the load tells whether it is the same model.
    if (before?.entry.created === entry.created)
      return { entry, tokenizer: before.tokenizer, template: before.template };
    const { id, template } = entry;
    const compiled = template && compiledOnce(template, (problem) => this.onBrokenTemplate(id, problem));
    return { entry, tokenizer: this.open(entry), template: compiled };
  }

  private open({ id, tokenizer, tokenizerCache }: ModelEntry): CachedTokenizer {
    const { verifyShare, onMismatch } = this.checks;
    return cachedTokenizer(openTokenizer(tokenizer), tokenizerCache, {
      verifyShare,
      onMismatch: (mismatch) => onMismatch(id, mismatch),
      later: (store) => void setImmediate(store),
    });
  }

  /** One that was added. Throws ModelNotFoundError where it is not ready. */
  added(name: string, { id, state }: TokenizerEntry): NamedTokenizer {
    if (state.status !== "ready") throw new ModelNotFoundError(name);
    const { tokenizer, template } = state;
    let compiled = template && this.templates.get(template);
    if (template !== undefined && compiled === undefined) {
      compiled = compiledOnce(template, () => {}); // the registry has told
      this.templates.set(template, compiled);
    }
    return { id, name, handle: tokenizer, tokenizer: openTokenizer(tokenizer), template: compiled };
  }
}
