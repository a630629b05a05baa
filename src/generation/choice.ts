import type { ChoiceFinish, TokenLogprobs } from "../engines/engine.ts";
import type { TokenDecoder, Tokenizer } from "../tokenizer/tokenizer.ts";
import type { FinishReason, GenerationSink, LogprobEntry } from "./events.ts";
import { StopMatcher } from "./stops.ts";

/** What a generation does with the tokens of each choice. */
export interface OutputOptions {
  readonly skipSpecialTokens: boolean;
  readonly stop: readonly string[];
  /** Stop tokens of the request. */
  readonly stopTokenIds: ReadonlySet<number>;
  /** The model's end-of-sequence ids; empty with `ignore_eos`. */
  readonly eosTokenIds: ReadonlySet<number>;
  /** The one of them that ends an answer without being named as its stop. */
  readonly quietEosTokenIds: ReadonlySet<number>;
  /** Keep the stop string, or the text of the stop token, in the output. */
  readonly includeStop: boolean;
  /** More tokens than this are not given out, whatever the engine does. */
  readonly maxTokens: number;
  /** Stops count from the token after these on. */
  readonly minTokens: number;
  readonly logprobs: boolean;
  readonly tokenIds: boolean;
}

/** One choice on its way from token ids to text. */
export class Choice {
  /** Tokens generated so far, the one that stopped it included. */
  tokens = 0;
  /** Set when the gateway itself ended the choice. */
  stopped: FinishReason | undefined;
  finished = false;
  private matched: string | number | undefined;
  private readonly decoder: TokenDecoder;
  private readonly stops: StopMatcher | undefined;
  private text = "";
  private ids: number[] | undefined;
  private entries: LogprobEntry[] | undefined;

  constructor(
    readonly index: number,
    private readonly tokenizer: Tokenizer,
    private readonly options: OutputOptions,
  ) {
    this.decoder = tokenizer.decoder({ skipSpecialTokens: options.skipSpecialTokens });
    this.stops = options.stop.length > 0 ? new StopMatcher(options.stop, options.includeStop) : undefined;
  }

  /** Takes new ids; true when the choice ended with them in a way that the engine may not know: a stop string, or too many. */
  push(ids: Uint32Array, count: number, logprobs: TokenLogprobs | undefined): boolean {
    if (this.stopped !== undefined || this.finished) return false;
    let row = 0;
    for (let i = 0; i < count; i++) {
      const id = ids[i]!;
      if (this.tokens >= this.options.maxTokens) {
        this.stopped = "length";
        return true;
      }
      this.tokens++;
      if (this.options.tokenIds) (this.ids ??= []).push(id);
      // An engine may leave positions out: a row belongs to the token that it names.
      if (this.options.logprobs && logprobs?.tokenIds[row] === id) this.pushLogprob(id, logprobs, row++);
      if (this.endsAt(id)) return typeof this.matched === "string";
    }
    return false;
  }

  private endsAt(id: number): boolean {
    const { options } = this;
    const counts = this.tokens > options.minTokens;
    const asked = options.stopTokenIds.has(id);
    if (counts && (asked || options.eosTokenIds.has(id))) {
      if (this.isNamed(id)) {
        this.matched = id;
        if (asked && options.includeStop) this.text += this.take(this.tokenText(id));
      }
      this.stopped = "stop";
      return true;
    }
    const piece = this.decoder.push(id);
    if (this.stops === undefined) {
      this.text += piece;
      return false;
    }
    this.text += this.stops.push(piece, counts);
    if (this.stops.matched === undefined) return false;
    this.matched = this.stops.matched;
    this.stopped = "stop";
    return true;
  }

  private take(text: string): string {
    return this.stops === undefined
      ? this.decoder.end() + text
      : this.stops.push(this.decoder.end() + text) + this.stops.end();
  }

  private tokenText(id: number): string {
    return Buffer.from(this.tokenizer.tokenBytes(id)).toString("utf8");
  }

  private pushLogprob(id: number, logprobs: TokenLogprobs, row: number): void {
    const logprob = logprobs.logprobs[row];
    if (logprob === undefined || logprob === null) return;
    const top = logprobs.top[row];
    this.entries ??= [];
    this.entries.push({
      id,
      logprob,
      top: top === undefined ? [] : top.tokenIds.map((t, k) => ({ id: t, logprob: top.logprobs[k]! })),
    });
  }

  /** Gives out what has become certain. */
  emit(sink: GenerationSink): void {
    if (this.text === "" && this.ids === undefined && this.entries === undefined) return;
    sink.emit({ type: "text", index: this.index, text: this.text, tokenIds: this.ids, logprobs: this.entries });
    this.text = "";
    this.ids = undefined;
    this.entries = undefined;
  }

  /** Ends the choice: what was held back, then `finish`. `engine` is how the engine ended it, if it did. */
  finish(sink: GenerationSink, engine?: ChoiceFinish): void {
    if (this.finished) return;
    this.finished = true;
    if (typeof this.matched !== "string") this.text += this.take("");
    this.emit(sink);
    const reason = this.stopped ?? (engine?.reason === "length" ? "length" : "stop");
    sink.emit({ type: "finish", index: this.index, reason, matchedStop: this.matched ?? this.engineStop(engine) });
  }

  /** Whether an answer that ends at this token says so. As in vLLM, the model's own EOS stays quiet even when it was asked for. */
  private isNamed(id: number): boolean {
    const { eosTokenIds, quietEosTokenIds, stopTokenIds } = this.options;
    return eosTokenIds.has(id) ? !quietEosTokenIds.has(id) : stopTokenIds.has(id);
  }

  /** The stop that only the engine saw: some trim the stop token off. */
  private engineStop(engine: ChoiceFinish | undefined): string | number | undefined {
    if (engine?.matchedStop !== undefined && this.options.stop.includes(engine.matchedStop)) return engine.matchedStop;
    const id = engine?.matchedTokenId;
    return id !== undefined && this.isNamed(id) ? id : undefined;
  }
}
