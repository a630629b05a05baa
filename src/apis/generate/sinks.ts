import type { TokenLogprobs } from "../../engines/engine.ts";
import type { GatewayError } from "../../errors.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { BatchSink, PromptCounts } from "../completions/batch.ts";
import { failStream } from "../openai/answer.ts";
import type { AnswerSink, FrameWriter, StreamSink } from "../shared/answer.ts";
import type { GenerateResults } from "./results.ts";

/** Lets results grow until all have ended. */
export class GenerateCollector implements BatchSink, AnswerSink {
  error: GatewayError | undefined;

  constructor(private readonly results: GenerateResults) {}

  begunWith(prompt: number, counts: PromptCounts): void {
    this.results.begunWith(prompt, counts);
  }

  logprobsOf(prompt: number, logprobs: TokenLogprobs): void {
    this.results.logprobsOf(prompt, logprobs);
  }

  emit(event: GenerationEvent): void {
    if (event.type === "output") this.results.output(event);
    else if (event.type === "finish") this.results.finish(event);
    else if (event.type === "error") this.error = event.error;
  }

  flush(): void {}
}

/**
 * Writes each result as a frame with all of its text: at first, whenever it has grown by `stream_interval` tokens, and at its end; then
 * `[DONE]`. A client that does not keep up gets the latest frame alone, not each of those that it has missed. An error is a frame of its
 * own, and no `[DONE]` follows.
 */
export class GenerateStream implements BatchSink, StreamSink {
  started = false;
  finished = false;
  error: GatewayError | undefined;
  private readonly grown = new Set<number>();
  /** Tokens that the last frame of each result had. */
  private readonly told = new Map<number, number>();
  private firstTold = false;

  constructor(
    private readonly results: GenerateResults,
    private readonly out: FrameWriter,
    private readonly onFirst: () => void,
  ) {}

  begunWith(prompt: number, counts: PromptCounts): void {
    this.results.begunWith(prompt, counts);
  }

  logprobsOf(prompt: number, logprobs: TokenLogprobs): void {
    this.results.logprobsOf(prompt, logprobs);
  }

  emit(event: GenerationEvent): void {
    if (event.type === "output") {
      this.results.output(event);
      this.grown.add(event.index);
    } else if (event.type === "finish") {
      this.results.finish(event);
      this.write(event.index);
    } else if (event.type === "usage") {
      this.finished = true;
      this.out.write("data: [DONE]\n\n");
      this.out.end();
    } else this.fail(event.error);
  }

  flush(): void {
    for (const index of this.grown) if (this.isDue(index)) this.write(index);
    this.out.flush();
  }

  private isDue(index: number): boolean {
    const told = this.told.get(index);
    if (told === undefined) return true;
    const { tokens, interval } = this.results.progress(index);
    return tokens - told >= interval && this.out.isBehind !== true;
  }

  commit(): void {
    this.started = true;
  }

  private write(index: number): void {
    const frame = `data: ${this.results.json(index, this.results.count > 1)}\n\n`;
    this.grown.delete(index);
    this.told.set(index, this.results.progress(index).tokens);
    this.started = true;
    if (!this.firstTold) {
      this.firstTold = true;
      this.onFirst();
    }
    this.out.write(frame);
  }

  private fail(error: GatewayError): void {
    this.error = error;
    this.finished = true;
    for (const index of this.grown) if (this.told.has(index)) this.write(index);
    this.grown.clear();
    failStream(this.out, error, this.started);
    this.onFirst();
  }
}
