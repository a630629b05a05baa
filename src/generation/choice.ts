import type { ChoiceFinish, TokenLogprobs } from "../engines/engine.ts";
import type { ContentFilter } from "../parsers/filter.ts";
import type { OutputParser } from "../parsers/parser.ts";
import type { TokenDecoder, Tokenizer } from "../tokenizer/tokenizer.ts";
import { continuedDecoder } from "./continued-decoder.ts";
import type { FinishReason, GenerationSink, LogprobEntry } from "./events.ts";
import { type CallOptions, OutputParts } from "./output-parts.ts";
import { StopMatcher } from "./stops.ts";

/** What a generation does with the tokens of each choice. */
export interface OutputOptions {
  readonly skipSpecialTokens: boolean;
  /** Ids that the answer goes on behind, in one text with them; undefined: it is a text of its own. */
  readonly continues?: Uint32Array | undefined;
  readonly stop: readonly string[];
  /** Stop strings end an answer in its reasoning as well, not only in its content. */
  readonly stopInReasoning: boolean;
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
  /** What reads reasoning and tool calls; undefined: all is text. */
  readonly parsing: ParsingOptions | undefined;
}

export interface ParsingOptions extends CallOptions {
  /** A parser for one choice. `filter` looks at its content. */
  readonly parser: (filter: ContentFilter | undefined) => OutputParser;
  /** Markers that are single tokens: text by id. */
  readonly markers: ReadonlyMap<number, string>;
  /** Given where an answer is plain text until one of these markers, each a single token, begins its reasoning. */
  readonly openers?: ReadonlySet<string>;
  /** The request named the function: then an answer ends with `stop`, as OpenAI's. */
  readonly isForced: boolean;
}

/** Why an answer has ended, by how its text ended and how many calls in it are complete. */
export const finishReason = (
  reason: "stop" | "length",
  calls: number,
  parsing: Pick<ParsingOptions, "isForced"> | undefined,
): FinishReason => (reason === "stop" && calls > 0 && parsing?.isForced === false ? "tool_calls" : reason);

export const NO_CALLS: CallOptions = {
  callId: () => "",
  single: false,
  customTools: new Set(),
  mayCall: false,
  mergesReasoning: false,
};

/** What of the engine's end of a choice says how it ended. */
type EngineEnd = Pick<ChoiceFinish, "reason" | "matchedStop" | "matchedTokenId">;

/** One choice on its way from token ids to text. */
export class Choice {
  /** Tokens generated so far, the one that stopped it included. */
  tokens = 0;
  /** Set when the gateway itself ended the choice. */
  stopped: "stop" | "length" | undefined;
  finished = false;
  private matched: string | number | undefined;
  private readonly decoder: TokenDecoder;
  private readonly stops: StopMatcher | undefined;
  /** Does the token at hand count for stop strings? */
  private counts = true;
  private parser: OutputParser | undefined;
  /** Until the first marker all is text, and no parser is made. */
  private isAsleep: boolean;
  private hasText = false;
  /** The stops see what the parser has found to be content, not all text. */
  private readonly stopsBehindParser: boolean;
  private readonly parts: OutputParts;
  private ids: number[] | undefined;
  private entries: LogprobEntry[] | undefined;

  constructor(
    readonly index: number,
    private readonly tokenizer: Tokenizer,
    private readonly options: OutputOptions,
  ) {
    const { parsing, stop } = options;
    this.decoder = continuedDecoder(tokenizer, options.skipSpecialTokens, options.continues);
    this.stops = stop.length > 0 ? new StopMatcher(stop, options.includeStop) : undefined;
    this.parts = new OutputParts(parsing ?? NO_CALLS);
    this.stopsBehindParser = this.stops !== undefined && parsing !== undefined && !options.stopInReasoning;
    this.isAsleep = parsing?.openers !== undefined && !this.stopsBehindParser;
    if (!this.isAsleep)
      this.parser = parsing?.parser(this.stopsBehindParser ? this.contentFilter(this.stops!) : undefined);
  }

  /** Takes new ids; true when the choice ended with them in a way that the engine may not know. */
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
      if (this.isStopToken(id)) return false; // where the engine ends by itself
      this.read(id);
      if (this.parts.satisfied) {
        this.stopped = "stop";
        return true;
      }
      if (this.stops?.matched === undefined) continue;
      this.matched = this.stops.matched;
      this.stopped = "stop";
      return true;
    }
    return false;
  }

  private isStopToken(id: number): boolean {
    const { options } = this;
    const asked = options.stopTokenIds.has(id);
    this.counts = this.tokens > options.minTokens;
    if (!this.counts || !(asked || options.eosTokenIds.has(id))) return false;
    if (this.isNamed(id)) {
      this.matched = id;
      if (asked && options.includeStop) this.settle(this.tokenText(id));
    }
    this.stopped = "stop";
    return true;
  }

  private read(id: number): void {
    this.parts.token();
    const marker = this.options.parsing?.markers.get(id);
    if (marker === undefined) {
      this.readText(this.decoder.push(id));
      return;
    }
    this.readText(this.decoder.end());
    this.endStops();
    if (this.stops?.matched === undefined) this.readMarker(marker);
  }

  private readMarker(marker: string): void {
    if (this.isAsleep) {
      const { parser, openers } = this.options.parsing!;
      if (this.hasText && openers?.has(marker) !== true) {
        this.parts.text(marker); // it closes nothing
        return;
      }
      this.isAsleep = false;
      this.parser = parser(undefined);
    }
    this.parser?.special(marker, this.parts);
  }

  /** Decoded text on its way through stops and parser; `stopped` says that the stops have seen it. */
  private readText(text: string, stopped = false): void {
    const rest =
      this.stops === undefined || this.stopsBehindParser || stopped ? text : this.stops.push(text, this.counts);
    if (rest === "") return;
    if (this.parser === undefined) {
      this.hasText = true;
      this.parts.text(rest);
    } else this.parser.push(rest, this.parts);
  }

  private contentFilter(stops: StopMatcher): ContentFilter {
    const counts = () => this.counts;
    return {
      push: (text) => stops.push(text, counts()),
      end: () => stops.end(),
      get stopped() {
        return stops.matched !== undefined;
      },
    };
  }

  /** Everything that is held back comes out, and `text` behind it. */
  private settle(text: string): void {
    this.readText(this.decoder.end() + text);
    this.endStops();
  }

  /** No stop string goes on from here. Behind the parser it is the parser that says so. */
  private endStops(): void {
    if (this.stops !== undefined && !this.stopsBehindParser) this.readText(this.stops.end(), true);
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

  /** Tokens so far whose text was reasoning. */
  get reasoningTokens(): number {
    return this.parts.reasoningTokens;
  }

  /** Gives out what has become certain. */
  emit(sink: GenerationSink): void {
    const { ids, entries } = this;
    if (ids === undefined && entries === undefined) {
      if (this.parts.isEmpty) return;
      if (sink.emitText !== undefined && this.parts.isText) {
        sink.emitText(this.index, this.parts.takeText());
        return;
      }
    }
    const parts = this.parts.take();
    sink.emit({ type: "output", index: this.index, parts, tokenIds: ids, logprobs: entries });
    this.ids = undefined;
    this.entries = undefined;
  }

  /** Ends the choice: what was held back, then `finish`. `engine` is how the engine ended it, if it did. */
  finish(sink: GenerationSink, engine?: EngineEnd): void {
    if (this.finished) return;
    this.finished = true;
    if (typeof this.matched !== "string") this.settle("");
    this.parser?.finish(this.parts);
    this.parts.finish();
    this.emit(sink);
    if (this.stops?.matched !== undefined) {
      // It may have waited for a longer one until now; it begins before whatever else ended the choice.
      this.matched = this.stops.matched;
      this.stopped = "stop";
    }
    const reason = this.stopped ?? (engine?.reason === "length" ? "length" : "stop");
    sink.emit({
      type: "finish",
      index: this.index,
      reason: finishReason(reason, this.parts.complete, this.options.parsing),
      matchedStop: this.matched ?? this.engineStop(engine),
    });
  }

  /** Whether an answer that ends at this token says so. As in vLLM, the model's own EOS stays quiet even when it was asked for. */
  private isNamed(id: number): boolean {
    const { eosTokenIds, quietEosTokenIds, stopTokenIds } = this.options;
    return eosTokenIds.has(id) ? !quietEosTokenIds.has(id) : stopTokenIds.has(id);
  }

  /** The stop that only the engine saw: some trim the stop token off. */
  private engineStop(engine: EngineEnd | undefined): string | number | undefined {
    if (engine?.matchedStop !== undefined && this.options.stop.includes(engine.matchedStop)) return engine.matchedStop;
    const id = engine?.matchedTokenId;
    return id !== undefined && this.isNamed(id) ? id : undefined;
  }
}
