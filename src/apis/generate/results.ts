import type { TokenLogprobs } from "../../engines/engine.ts";
import { EngineFailureError } from "../../errors.ts";
import type { FinishReason, GenerationEvent, LogprobEntry, TopLogprob } from "../../generation/events.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import type { PromptCounts } from "../completions/batch.ts";
import { LOWEST } from "../openai/logprobs.ts";
import type { GenerateItem } from "./ask.ts";

/** One prompt of a request, as its results need it. */
export interface GeneratePrompt extends GenerateItem {
  readonly tokenIds: Uint32Array;
}

export interface GenerateAnswer {
  /** Ids of the results begin with it where the client named none. */
  readonly id: string;
  /** `performance.now()` of its beginning. */
  readonly started: number;
  readonly prompts: readonly GeneratePrompt[];
  /** Results of each prompt. */
  readonly choices: number;
  readonly tokenizer: Tokenizer;
  readonly eosTokenIds: ReadonlySet<number>;
  readonly showsText: boolean;
  readonly showsPromptIds: boolean;
}

/** A result as it grows: pieces of its JSON, as each frame of a stream tells all of it again. */
interface Growing {
  text: string;
  ids: string;
  count: number;
  lastId: number | undefined;
  logprobs: string;
  top: string;
  rows: number;
  ended: string | undefined;
}

interface Input {
  readonly logprobs: string;
  readonly top: string;
}

/** The results of a request, each in SGLang's form. */
export class GenerateResults {
  readonly count: number;
  private readonly results: Growing[];
  private readonly counts: (PromptCounts | undefined)[] = [];
  private readonly inputs: (Input | undefined)[] = [];

  constructor(private readonly answer: GenerateAnswer) {
    this.count = answer.prompts.length * answer.choices;
    this.results = Array.from({ length: this.count }, () => ({
      text: "",
      ids: "",
      count: 0,
      lastId: undefined,
      logprobs: "",
      top: "",
      rows: 0,
      ended: undefined,
    }));
  }

  begunWith(prompt: number, counts: PromptCounts): void {
    this.counts[prompt] = counts;
  }

  /** As in SGLang, the first of those that are shown has no value, wherever it stands. */
  logprobsOf(at: number, { tokenIds, logprobs, top }: TokenLogprobs): void {
    const { logprobStart, topLogprobs } = this.answer.prompts[at]!;
    const shown = Array.from(tokenIds.keys()).slice(logprobStart);
    const valued = shown.slice(1);
    const row = (i: number): TopLogprob[] =>
      top[i]?.tokenIds.map((id, k) => ({ id, logprob: top[i]!.logprobs[k]! })) ?? [];
    const draw = (i: number, logprob: number | null) => this.token(tokenIds[i]!, logprob);
    this.inputs[at] = {
      logprobs: [
        ...shown.slice(0, 1).map((i) => draw(i, null)),
        ...valued.map((i) => draw(i, logprobs[i] ?? null)),
      ].join(),
      top:
        topLogprobs === 0
          ? ""
          : [...shown.slice(0, 1).map(() => "null"), ...valued.map((i) => this.row(row(i)))].join(),
    };
  }

  output({ index, parts, tokenIds = [], logprobs = [] }: GenerationEvent & { type: "output" }): void {
    const prompt = this.promptOf(index);
    if (prompt.onlyPrompt) return;
    const result = this.results[index]!;
    for (const part of parts) if (part.type === "text") result.text += JSON.stringify(part.text).slice(1, -1);
    for (const id of tokenIds) {
      result.ids += result.count++ === 0 ? id : `,${id}`;
      result.lastId = id;
    }
    for (const entry of logprobs) this.grow(result, entry, prompt.topLogprobs > 0);
  }

  finish({ index, reason, matchedStop }: GenerationEvent & { type: "finish" }): void {
    const result = this.results[index]!;
    const end = this.promptOf(index).onlyPrompt ? { type: "length", length: 0 } : this.end(result, reason, matchedStop);
    result.ended = JSON.stringify(end);
  }

  /** Tokens of a result so far, and after how many more of them a stream is to tell it again. */
  progress(index: number): { readonly tokens: number; readonly interval: number } {
    return { tokens: this.results[index]!.count, interval: this.promptOf(index).sampling.stream_interval ?? 1 };
  }

  /** A result as JSON, as far as it has come. Throws where the engine has kept something back. */
  json(index: number, withIndex = false): string {
    const { answer } = this;
    const result = this.results[index]!;
    const prompt = this.promptOf(index);
    const ids = answer.showsPromptIds ? `,"prompt_token_ids":[${prompt.tokenIds.join()}]` : "";
    const number = withIndex ? `,"index":${index}` : "";
    return `{"text":"${result.text}","output_ids":[${result.ids}]${ids},"meta_info":{${this.meta(index, result, prompt)}}${number}}`;
  }

  private meta(index: number, result: Growing, prompt: GeneratePrompt): string {
    const { answer } = this;
    const { promptTokens, cachedTokens } = this.counts[this.numberOf(index)] ?? {
      promptTokens: prompt.tokenIds.length,
      cachedTokens: 0,
    };
    const latency = result.ended === undefined ? "" : `,"e2e_latency":${(performance.now() - answer.started) / 1000}`;
    const logprobs = prompt.withLogprobs ? this.logprobs(index, result, prompt) : "";
    return `"id":${JSON.stringify(this.idOf(index, prompt))},"finish_reason":${result.ended ?? "null"},"prompt_tokens":${promptTokens}${logprobs},"completion_tokens":${result.count},"cached_tokens":${cachedTokens}${latency}`;
  }

  private logprobs(index: number, result: Growing, { logprobStart, topLogprobs }: GeneratePrompt): string {
    const input = this.inputs[this.numberOf(index)];
    if (input === undefined && logprobStart >= 0)
      throw new EngineFailureError(502, "engine_protocol_error", "The engine gave no logprobs of the prompt");
    const top =
      topLogprobs === 0 ? "" : `,"input_top_logprobs":[${input?.top ?? ""}],"output_top_logprobs":[${result.top}]`;
    return `,"input_token_logprobs":[${input?.logprobs ?? ""}],"output_token_logprobs":[${result.logprobs}],"output_token_logprobs_length":${result.rows}${top}`;
  }

  private grow(result: Growing, { id, logprob, top }: LogprobEntry, withTop: boolean): void {
    const comma = result.rows++ === 0 ? "" : ",";
    result.logprobs += comma + this.token(id, logprob);
    if (withTop) result.top += comma + this.row(top);
  }

  private row(top: readonly TopLogprob[]): string {
    return `[${top.map(({ id, logprob }) => this.token(id, logprob)).join()}]`;
  }

  private token(id: number, logprob: number | null): string {
    const { showsText, tokenizer } = this.answer;
    const text = showsText ? JSON.stringify(Buffer.from(tokenizer.tokenBytes(id)).toString("utf8")) : "null";
    return `[${logprob === null ? "null" : Math.max(logprob, LOWEST)},${id},${text}]`;
  }

  /** SGLang names the EOS as well that ended an answer. */
  private end(result: Growing, reason: FinishReason, matchedStop: string | number | undefined): object {
    if (reason === "length") return { type: "length", length: result.count };
    const { lastId } = result;
    const eos = lastId !== undefined && this.answer.eosTokenIds.has(lastId) ? lastId : undefined;
    const matched = matchedStop ?? eos;
    return { type: "stop", ...(matched !== undefined && { matched }) };
  }

  private idOf(index: number, { rid }: GeneratePrompt): string {
    const { choices, id, prompts } = this.answer;
    const own = rid ?? (prompts.length === 1 ? id : `${id}_${this.numberOf(index)}`);
    return choices === 1 ? own : `${own}_${index % choices}`;
  }

  private numberOf = (index: number): number => Math.floor(index / this.answer.choices);
  private promptOf = (index: number): GeneratePrompt => this.answer.prompts[this.numberOf(index)]!;
}
