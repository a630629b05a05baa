import type { ChoiceFinish, GenerateHandler, TokenChunk, TokenLogprobs } from "../../engines/engine.ts";
import type { Clock } from "../clock.ts";

/** How long an answer waits for what the half that prefills has to say. It says it when the other begins, or earlier. */
const WAIT_MS = 1000;

/**
 * The answer of the half that decodes, with what only the other one knows: the tokens of the prompt that were in its cache, and the
 * logprobs of the prompt. These come first in an answer and the count is due at its end, so it is held back there until they are known.
 */
export class PairAnswer implements GenerateHandler {
  private cachedTokens: number | undefined;
  private promptLogprobs: TokenLogprobs | undefined;
  private wantsPromptLogprobs = false;
  /** The answer's own counts are right: nobody has prefilled. */
  private isAlone = false;
  /** Nothing is awaited from the half that prefills. */
  private isComplete = false;
  private isClosed = false;
  /** What has come and was not given on. */
  private held: (() => void)[] = [];
  private stopWaiting: (() => void) | undefined;

  constructor(
    private readonly handler: GenerateHandler,
    private readonly clock: Clock,
  ) {}

  /** What the half that prefills is asked for besides the prompt's place in the cache. */
  expect({ promptLogprobs }: { readonly promptLogprobs: boolean }): void {
    this.wantsPromptLogprobs = promptLogprobs;
  }

  /** Nobody prefills. */
  expectNothing(): void {
    this.isAlone = true;
    this.isComplete = true;
  }

  /** The half that prefills tells something; `isLast`: all that it will. */
  prefillTold(told: TokenChunk | ChoiceFinish, isLast: boolean): void {
    this.cachedTokens = Math.max(this.cachedTokens ?? 0, told.cachedTokens);
    if ("promptLogprobs" in told) this.promptLogprobs ??= told.promptLogprobs;
    if (isLast || !this.wantsPromptLogprobs || this.promptLogprobs !== undefined) this.complete();
  }

  /** Nothing more is to be awaited of the half that prefills. */
  complete(): void {
    if (this.isComplete) return;
    this.isComplete = true;
    this.stopWaiting?.();
    const { held } = this;
    if (held.length === 0) return;
    this.held = [];
    for (const give of held) if (!this.isClosed) give();
    if (!this.isClosed) this.handler.onIdle();
  }

  onChunk(chunk: TokenChunk): void {
    if (!this.isComplete && (this.wantsPromptLogprobs || this.held.length > 0)) {
      const copy = { ...chunk, tokenIds: chunk.tokenIds.slice(0, chunk.count) };
      this.hold(() => this.give(copy));
    } else this.give(chunk);
  }

  onFinish(finish: ChoiceFinish): void {
    const give = () => this.handler.onFinish({ ...finish, cachedTokens: this.cachedOf(finish) });
    if (this.isComplete) give();
    else this.hold(give);
  }

  onIdle(): void {
    if (this.held.length === 0) this.handler.onIdle();
  }

  /** `end` is called behind all that has come. */
  onEnd(): void {}

  end(end: () => void): void {
    if (this.held.length === 0) end();
    else this.hold(end);
  }

  /** Nobody wants any more of it. */
  close(): void {
    this.isClosed = true;
    this.held = [];
    this.stopWaiting?.();
  }

  private hold(give: () => void): void {
    this.held.push(give);
    this.stopWaiting ??= this.clock.after(WAIT_MS, () => this.complete());
  }

  private give(chunk: TokenChunk): void {
    chunk.cachedTokens = this.cachedOf(chunk);
    // those of the half that decodes would be of what it has not computed
    if (!this.isAlone) {
      chunk.promptLogprobs = this.promptLogprobs;
      this.promptLogprobs = undefined;
    }
    this.handler.onChunk(chunk);
  }

  /** To the half that decodes all of the prompt came from a cache. */
  private cachedOf(told: TokenChunk | ChoiceFinish): number {
    return this.isAlone ? told.cachedTokens : (this.cachedTokens ?? 0);
  }
}
